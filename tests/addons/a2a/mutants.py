"""Breaks one rule of the A2A repairs at a time, and tells whether any test notices.

uv run python -m tests.addons.a2a.mutants [NAME ...]
"""

import sys
from pathlib import Path

from tests.mutation import ROOT, Mutant, fails, tell

ADDONS = "addons/midstream_addons"
DIALECTS = "proxy/midstream/dialects"
FIRST = ("turns", "cards", "tasks", "options", "captures", "time", "invariants")
"""The quick ones."""
MYSELF = "test_mutants.py"
STREAMS = 600


def delta(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{ADDONS}/snapshot_to_delta/{module}.py", old, new)


def once(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{ADDONS}/final_message_once/{module}.py", old, new)


def dialect(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{DIALECTS}/{module}.py", old, new)


MUTANTS = [
    # what an update creates, and what it goes on from
    delta(
        "append_to_nothing_passes",
        "updates",
        "creates = is_first and _is_new(update, ctx)",
        "creates = False",
    ),
    delta("begins_again_what_another_stream_began", "updates", "is_known or stream", "stream"),
    delta("begins_again_what_was_forgotten", "updates", "stream.has_forgotten or ", ""),
    delta(
        "begins_again_what_is_subscribed_to",
        "updates",
        " or stream.asked is Asked.SUBSCRIBE)",
        ")",
    ),
    delta(
        "replaces_what_it_does_not_know",
        "updates",
        "if is_first and update.append and not creates:",
        "if False:",
    ),
    delta("a_task_that_goes_on_is_over", "updates", "artifact.is_over = False", "pass"),
    delta(
        "a_task_is_not_taken_over",
        "events",
        "return tasks.judge_first(frame, event, ctx, options)",
        "return KEEP",
    ),
    delta("no_room_is_made", "state", "if artifact.is_over]", "if False]"),
    # replacing
    delta("replacing_appends", "replacing", 'return lane.reset(new, "replace")', "return KEEP"),
    delta(
        "a_replay_is_said_again",
        "replacing",
        "if lane.text.startswith(new):",
        "if False:",
    ),
    delta(
        "a_shorter_text_is_not_put_in_place", "replacing", "None if replay is None else", "None and"
    ),
    # undecided
    delta(
        "nothing_waits",
        "undecided",
        "return HOLD if can_hold else settle(lane)",
        "return settle(lane)",
    ),
    delta(
        "an_extension_is_new_text",
        "undecided",
        "is_plausible = lane.bits >= 0  # an",
        "is_plausible = False  # an",
    ),
    delta(
        "locks_on_any_evidence",
        "undecided",
        "if is_longer and lane.bits >= lane.locking_bits:",
        "if is_longer:",
    ),
    delta(
        "a_held_update_is_always_a_snapshot",
        "undecided",
        "if goes_on or (new == held and information(held) >= lane.firm_bits):",
        "if True:",
    ),
    delta(
        "a_whole_text_decides_nothing",
        "undecided",
        "reading = _fitting(wholes, as_snapshot, as_delta)",
        "reading = None",
    ),
    delta("few_bits_are_enough", "undecided", "FEW_BITS: Final = 4.0", "FEW_BITS: Final = 0.0"),
    delta(
        "an_empty_update_overtakes",
        "reader",
        "return settle(lane, is_end=update.is_last), KEEP",
        "return None, KEEP",
    ),
    delta(
        "two_lanes_may_wait",
        "reader",
        "return _resolve(lane, new, can_hold=update.can_hold)",
        "return _resolve(lane, new, can_hold=True)",
    ),
    # deltas
    delta("no_aggregate", "deltas", "not lane.is_declared and may_repeat(lane, new)", "False"),
    delta(
        "said_deltas_are_looked_at", "deltas", "not lane.is_declared and may_repeat", "may_repeat"
    ),
    delta(
        "any_repeat_is_an_aggregate",
        "deltas",
        "return begins_at_border and repeated >= least",
        "return True",
    ),
    delta(
        "one_update_is_a_run", "deltas", "LEAST_REPEATED: Final = 2", "LEAST_REPEATED: Final = 1"
    ),
    delta(
        "a_short_repeat_is_weighty",
        "deltas",
        "return is_long or information(new) >= WEIGHTY_LOCKS * lane.options.lock_bits",
        "return True",
    ),
    delta(
        "an_aggregate_ends_no_run",
        "deltas",
        "lane.aggregates += 1\n    lane.end_segment()",
        "lane.aggregates += 1",
    ),
    # snapshots
    delta(
        "nothing_is_doubted",
        "lane",
        "bytearray(doubt) if doubt and self.bits < self.firm_bits else None",
        "None",
    ),
    delta(
        "a_correction_is_a_next_turn",
        "snapshots",
        "if lane.can_reset and _corrects(lane, new):",
        "if False:",
    ),
    delta("a_stale_snapshot_is_said", "snapshots", 'return Step(Way.NOTHING, "stale")', "pass"),
    delta(
        "a_next_turn_replaces",
        "snapshots",
        "    lane.end_segment()\n    return lane.keep(new)",
        '    return _restart(lane, new, "correction")',
    ),
    delta(
        "half_a_character_is_said",
        "text",
        "return UNIT_BYTES if last and is_cut else 0",
        "return 0",
    ),
    # what leaves
    delta(
        "a_removed_last_is_lost", "leaving", "if not update.last or artifact.is_sealed:", "if True:"
    ),
    delta(
        "an_annotated_update_is_mended", "leaving", 'if options.output == "annotate":', "if False:"
    ),
    delta("a_new_artifact_is_left", "artifact", "if self.renamed else", "if False else"),
    delta("an_error_is_edited_on", "leaving", "    artifact.said = None\n", ""),
    delta(
        "data_is_said_again",
        "leaving",
        "found.removed |= _repeated_data(update, artifact)",
        "pass",
    ),
    delta("held_is_settled_at_once", "sent", "if frame is not self.at_hand:", "if True:"),
    delta("is_last_although_sealed", "turn", "is_last=not artifact.is_sealed", "is_last=True"),
    delta("no_trailer_behind_a_wait", "turn", "if is_to_trail and", "if False and"),
    delta(
        "clean_streams_get_a_trailer",
        "turn",
        "if artifact.model is None or artifact.is_sealed",
        "if artifact.is_sealed",
    ),
    delta("a_trailer_before_more_text", "turn", " or _is_to_go_on(artifact, wholes)", ""),
    delta(
        "one_answer_counts_twice",
        "turn",
        "        if artifact.is_over:\n            continue\n",
        "",
    ),
    delta("two_answers_are_a_streak", "prior", "STREAK: Final = 3", "STREAK: Final = 2"),
    # the short way
    delta(
        "the_short_way_looks_at_no_repeat", "clean", "deltas.may_repeat(lane, new) and", "False and"
    ),
    delta(
        "the_short_way_overtakes", "artifact", "self.held is None and self.ahead is None and", ""
    ),
    delta("the_short_way_forgets", "clean", "    lane.keep(new)\n", ""),
    delta(
        "the_short_way_has_no_bound",
        "clean",
        "    if (\n        artifact.counted",
        "    if False and (\n        artifact.counted",
    ),
    # bounds
    delta("the_bound_is_none", "updates", "if is_over:", "if False:"),
    delta("over_the_bound_all_replace", "closed", "not artifact.said.begins(text)", "False"),
    delta("over_the_bound_none_replace", "artifact", "self.said = Digest.of(", "Digest.of("),
    delta("a_second_turn_over_the_bound_replaces", "artifact", "and not snapshots[0].segment", ""),
    # tasks, messages, statuses and cards
    delta(
        "a_task_is_compacted_without_proof",
        "tasks",
        "if reduced.is_firm or is_told or digest ==",
        "if True or is_told or digest ==",
    ),
    delta(
        "a_read_task_is_not_compacted",
        "events",
        "return tasks.judge(frame, event, ctx, options)",
        "return KEEP",
    ),
    delta("any_message_is_compacted", "tasks", 'status.state != "completed" or', ""),
    delta(
        "the_repeating_artifact_stays",
        "status",
        'return Verdict.replace("status_text", emptied)',
        "return KEEP",
    ),
    delta("a_question_is_deduped", "status", "or event.state not in SPEAKING", ""),
    delta(
        "the_end_repeats_the_statuses",
        "status",
        "a2a_write.without_message(frame, event) if is_said else frame",
        "frame",
    ),
    delta(
        "foreign_cards_are_rewritten",
        "cards",
        "and any(a2a_card.leads_to(one.url, place) for place in places)",
        "",
    ),
    delta("grpc_is_rewritten", "cards", "if one.binding != GRPC\n        and any", "if any"),
    # the final message
    once(
        "a_question_goes",
        "addon",
        'isinstance(event, StatusUpdate) and event.state == "completed"',
        "isinstance(event, StatusUpdate)",
    ),
    once("unknown_data_goes", "message", "if not told.has_data_of(message):", "if False:"),
    once(
        "what_is_beyond_is_lost", "message", "is_said = any(", "is_said = bool(answers[0]) or any("
    ),
    once("what_is_beyond_stays", "message", "if is_text else None", "if False else None"),
    once(
        "beyond_goes_to_another_artifact",
        "message",
        "if not any(told.texts",
        "if False and not any(told.texts",
    ),
    once("a_prefix_is_a_repeat", "said", "return spoken and not text", "return spoken"),
    once("white_space_counts", "said", "core = text.rstrip()", "core = text"),
    once(
        "a_fallback_goes",
        "message",
        "if not answers[0]:\n        return",
        "if False:\n        return",
    ),
    once("replacing_adds", "state", "self.texts[lane] = Said()\n        for", "pass\n        for"),
    once("the_first_artifact_is_the_answer", "state", "*([said] for _, said in mine)", ""),
    once(
        "too_many_texts_are_forgotten",
        "state",
        "                self.is_unsure = True\n                return",
        "                return",
    ),
    once("old_tasks_stay", "state", "if not old.is_over", "if True"),
    # the dialect
    dialect(
        "a_socket_leads_elsewhere", "a2a_card", "scheme = _CARRIERS.get(scheme, scheme)", "pass"
    ),
    dialect(
        "the_end_of_a_turn_is_final_alone",
        "a2a_events",
        "return event.final or event.state in TERMINAL or",
        "return event.final or",
    ),
]


def is_caught(mutant: Mutant, streams: int = STREAMS) -> bool:
    """Run the tests against a mutant, the quick ones first."""
    mine = Path(__file__).parent
    tests = [str(mine / f"test_{name}.py") for name in FIRST]
    tests += sorted(set(map(str, mine.glob("test_*.py"))) - {*tests, str(mine / MYSELF)})
    tests += sorted(map(str, (ROOT / "tests/dialects").glob("test_a2a*.py")))
    environ = {"MIDSTREAM_STREAMS": str(streams)}
    return fails(mutant, tests, environ, ["-n", "0", "--hypothesis-seed=0"])


UNTOUCHED = delta("untouched", "state", "MAX_DIGESTS = 1_024", "MAX_DIGESTS = 1_024")


if __name__ == "__main__":
    sys.exit(tell(sys.argv[1:], MUTANTS, UNTOUCHED, is_caught))
