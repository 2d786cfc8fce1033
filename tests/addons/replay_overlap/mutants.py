"""Breaks one rule of the repair at a time, and tells whether any test notices.

uv run python -m tests.addons.replay_overlap.mutants [NAME ...]
"""

import sys
from pathlib import Path

from tests.mutation import ROOT, Mutant, fails, tell

ADDON = "addons/midstream_addons/replay_overlap"
DIALECTS = "proxy/midstream/dialects"
DIALECT_TESTS = ("ui_stream", "cloudflare_chat", "cloudflare_transcript")
FIRST = ("offers", "captures", "memory", "transparency")
"""The quick ones."""
MYSELF = "test_mutants.py"
CASES = 500


def addon(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{ADDON}/{module}.py", old, new)


def dialect(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{DIALECTS}/{module}.py", old, new)


MUTANTS = [
    # rule 1: the own ACK and the held replay
    addon("no_own_ack", "offer", "Verdict((ack,), ", "Verdict((), "),
    addon(
        "second_offer_passes",
        "server",
        'return Verdict.drop("fetch_replay") if is_same else KEEP',
        "return KEEP",
    ),
    addon(
        "none_passes_an_open_offer",
        "server",
        "if socket.offer is not None:\n                return",
        "if False:\n                return",
    ),
    addon(
        "question_passes_an_open_offer",
        "client",
        "if socket.offer is None:\n        return KEEP",
        "if True:\n        return KEEP",
    ),
    addon("offer_before_it_is_whole", "offer", "is_ready = taken.is_whole and", "is_ready ="),
    addon(
        "offer_before_it_is_asked_for",
        "offer",
        "is_wanted = socket.has_asked or",
        "is_wanted = True or",
    ),
    # rule 2: an early end
    addon(
        "early_end_not_held",
        "offer",
        "return response.done and not response.replay and not taken.has_replayed",
        "return False",
    ),
    addon("early_end_twice", "burst", "if not early or ends(rest):", "if not early:"),
    addon(
        "early_end_stays_first",
        "burst",
        "rest = [*(frame for frame in ahead if frame not in early)",
        "return list(frames)\n    rest = [*(frame for frame in ahead if frame not in early)",
    ),
    addon("early_end_lost", "burst", "    return [*rest, *early]", "    return rest"),
    # rule 3: the gate and the form
    addon(
        "rebuild_where_the_snapshot_is_early",
        "gate",
        "is_late = ctx.state.has_asked and not is_waiting(ctx)",
        "is_late = True",
    ),
    addon(
        "rebuild_though_a_tool_waits",
        "gate",
        "ctx.state.has_asked and not is_waiting(ctx)",
        "ctx.state.has_asked",
    ),
    addon(
        "never_rebuild", "gate", "Form.REBUILD if is_late and is_last", "Form.BASELINE if is_late"
    ),
    addon("r3_not_believed", "gate", 'if options.client == "r3":', 'if options.client == "r9":'),
    addon("r1_not_believed", "gate", 'if options.client == "r1":', 'if options.client == "r9":'),
    addon("r3_own_tool_not_rebuilt", "server", '{"r3": Form.REBUILD, "r1"', '{"r1"'),
    addon("r1_own_tool_not_observed", "server", ', "r1": Form.OBSERVED}', "}"),
    addon(
        "inexpressible_parts_rebuilt",
        "gate",
        "if not is_expressible(stream.base.parts):\n        return Form.BASELINE\n    if options",
        "if options",
    ),
    addon("not_understood_is_rewritten", "gate", "if not stream.exact:", "if False:"),
    addon(
        "errors_are_rewritten",
        "gate",
        "if any(r.error for r in responses):\n        return",
        "if False:\n        return",
    ),
    addon("no_start_is_rewritten", "gate", 'else "no_start"', 'else ""'),
    addon("over_is_resumed", "offer", "if taken.fetches == 0 and", "if False and"),
    addon(
        "old_history_is_believed",
        "history",
        "return text_bytes(documents) < max(text_bytes(seen), least_bytes)",
        "return False",
    ),
    addon(
        "learns_without_settling",
        "answers",
        "return Verdict.keep(asks=(Wait(LEARNED_WAIT_MS",
        "taken.is_learning = False\n    return offer.advance(ctx, options)\n    return "
        "Verdict.keep(asks=(Wait(LEARNED_WAIT_MS",
    ),
    addon(
        "never_learns",
        "offer",
        "taken.mended, taken.is_learning = stream, stream is None and not is_over",
        "taken.mended, taken.is_learning = stream, False",
    ),
    # rule 4: the reset
    addon(
        "no_reset_list",
        "gate",
        "return [chat.message_list(documents), chat.message_updated(message)]",
        "return [chat.message_updated(message)]",
    ),
    addon(
        "no_reset_message",
        "gate",
        "return [chat.message_list(documents), chat.message_updated(message)]",
        "return [chat.message_list(documents)]",
    ),
    addon(
        "reset_after_the_offer", "sending", "return [*reset, offered]", "return [offered, *reset]"
    ),
    addon("no_reset", "sending", "return [*reset, offered]", "return [offered]"),
    addon(
        "strays_stay",
        "gate",
        'elif not (other.role == "assistant" and _is_empty(other.document)):',
        "else:",
    ),
    addon(
        "r1_not_told_that_there_is_nothing",
        "sending",
        "return [*none, *reset, plain(offered)]",
        "return [*reset, plain(offered)]",
    ),
    # rule 5: the rewritten replay
    addon("numbers_kept", "drafts", """if frame.wire.find(b'"seq"') >= 0:""", "if False:"),
    addon(
        "no_continuation_flag",
        "drafts",
        "if self.stream.is_continuation and not response.continuation:",
        "if False:",
    ),
    addon("no_message_id", "drafts", '{**chunk, "messageId": target}', "chunk"),
    addon(
        "no_baseline_built", "drafts", ", *encode(parts, self.adopts)]\n        if", "]\n        if"
    ),
    addon("no_joining", "burst", "for draft in joined_drafts(drafts)", "for draft in drafts"),
    addon(
        "no_pacing",
        "offer",
        "settles=ctx.held, paced=True, repairs",
        "settles=ctx.held, repairs",
    ),
    addon("finished_tools_run_again", "drafts", "return self._tool(chunk)", "return None"),
    addon(
        "orphans_not_adopted",
        "burst",
        "return found if found and adopted(parts, found[0]) == len(parts) - 1 else None",
        "return None",
    ),
    addon("large_chunks_lost", "burst", "unstored = list(stream.unstored)", "unstored = []"),
    addon(
        "large_chunks_twice",
        "burst",
        "while unstored and unstored[-1].wire in live:",
        "while False:",
    ),
    addon("live_frames_ahead_of_a_late_replay", "burst", "or r.body not in held]", "or True]"),
    # rule 6: the undo
    addon("no_undo", "answers", "return ending.undo(taken, ctx)", "return KEEP"),
    addon(
        "undo_of_nothing",
        "ending",
        "return (chat.message_updated(mended.stream.json()),)",
        "return ()",
    ),
    addon(
        "not_muted",
        "ending",
        "mended.is_muted = not any(map(burst.response_of, frames))",
        "mended.is_muted = False",
    ),
    addon(
        "mute_for_ever",
        "ending",
        '    if not response.done:\n        return Verdict.drop("undo")',
        '    return Verdict.drop("undo")',
    ),
    addon(
        "late_ack_forgotten",
        "client",
        "return KEEP if mended.form is Form.PASSED else offer.retake",
        "return KEEP\n    offer.retake",
    ),
    # rule 7: the heal
    addon(
        "heals_always",
        "heal",
        "if not socket.is_again or not ctx.conversation.is_unfinished or",
        "if",
    ),
    addon("heals_never", "heal", "    socket.is_healing = True\n", "    return KEEP\n"),
    addon(
        "heals_what_is_busy", "heal", "return socket.is_healing and not (", "return True or not ("
    ),
    addon(
        "end_hides_a_turn",
        "heal",
        "if documents is not None and socket.chats != taken.chats:",
        "if False:",
    ),
    addon(
        "heal_without_the_message",
        "heal",
        "updated = [] if last is None else [chat.message_updated(last)]",
        "updated = []",
    ),
    addon("crossing_turn_is_wiped", "heal", "    if not fresh:", "    if True:"),
    addon("breaks_are_not_noted", "addon", "        shared.is_unfinished = True", "        pass"),
    # rule 8: the closing list
    addon(
        "no_relist",
        "relist",
        "return (Wait(options.relist_wait_ms",
        "return ()\n    return (Wait(options.relist_wait_ms",
    ),
    addon(
        "relist_after_a_turn",
        "relist",
        "closing is None or socket.chats != socket.relist_chats or",
        "closing is None or",
    ),
    addon("relist_over_a_stream", "relist", "if ctx.conversation.transcript.streams:", "if False:"),
    addon(
        "relist_over_an_update",
        "server",
        "shared.transcript.update(bytes(message.message))\n            socket.closing_list = None",
        "shared.transcript.update(bytes(message.message))",
    ),
    # rule 9: one ACK an offer
    addon("second_ack_passes", "client", 'return Verdict.drop("one_ack")', "return KEEP"),
    addon("second_offer_needs_no_ack", "client", "socket.acked.clear()\n", "\n"),
    # the chat is emptied
    addon(
        "memory_outlives_the_chat",
        "addon",
        "return KEEP if is_current else ending.forget(ctx)",
        "return KEEP",
    ),
    addon("clear_is_not_noted", "state", "self.generation += 1", "pass"),
    addon(
        "offer_outlives_the_chat",
        "ending",
        "    socket.forget(ctx.conversation.generation)\n    if taken is None",
        "    return KEEP\n    if taken is None",
    ),
    # messages wait for the replay that is older than they
    addon(
        "list_overtakes_the_replay",
        "server",
        "return offer.HOLD if taken is not None and taken.phase is Phase.SENT else KEEP",
        "return KEEP",
    ),
    # bounds
    addon("pages_grow", "state", "keep_last(self.waiting_pages, MAX_PAGES)", "pass"),
    addon("outcomes_grow", "state", "len(self.results) > MAX_RESULTS or", ""),
    addon("mended_grow", "state", "keep_last(self.mended, MAX_MENDED)", "pass"),
    addon("places_grow", "state", "keep_last(self.places, MAX_STREAMS)", "pass"),
    # the transcript
    dialect(
        "baseline_grows_too",
        "cloudflare_transcript",
        "fold = Fold(copies(base.parts))",
        "fold = Fold(base.parts)",
    ),
    dialect(
        "first_turn_has_a_baseline",
        "cloudflare_transcript",
        "        if not is_continuation:\n            base.parts = []\n",
        "",
    ),
    dialect(
        "chunks_fold_twice",
        "cloudflare_transcript",
        "if stream is None or place.length <= stream.applied:",
        "if stream is None:",
    ),
    dialect(
        "replay_is_not_believed",
        "cloudflare_transcript",
        "if stream is None or (stream.exact and total < stream.applied):",
        "if True:",
    ),
    dialect(
        "short_replay_is_believed",
        "cloudflare_transcript",
        "if stream is None or (stream.exact and total < stream.applied):",
        "if stream is None:",
    ),
    dialect(
        "gaps_are_not_seen", "cloudflare_transcript", "if before > stream.applied:", "if False:"
    ),
    dialect(
        "outcomes_do_not_reach_the_baseline",
        "cloudflare_transcript",
        "            self._take_outcomes(running, document)\n",
        "",
    ),
    dialect(
        "list_forgets_the_stream",
        "cloudflare_transcript",
        "            if self.find(stream.target) is None:\n",
        "            if False:\n",
    ),
    dialect(
        "listed_outcome_counts_twice",
        "cloudflare_transcript",
        "if stream.target == message.id and not stream.is_listed:",
        "if stream.target == message.id:",
    ),
    dialect(
        "split_list_is_overwritten",
        "cloudflare_transcript",
        "if message is not None and not stream.is_listed:",
        "if message is not None:",
    ),
    dialect(
        "another_repair_is_repaired",
        "cloudflare_transcript",
        "            stream.fold.exact = False  # no server names it",
        "            pass  #",
    ),
    dialect(
        "large_chunk_folds_twice",
        "cloudflare_transcript",
        "if wire in here[place.unstored :]:",
        "if False:",
    ),
    dialect(
        "size_is_not_bound",
        "cloudflare_transcript",
        "if self.size_bytes > self.max_bytes:\n            self.forget_messages()\n"
        "            return",
        "if False:\n            return",
    ),
    # chunks and parts
    dialect(
        "joined_across_parts",
        "ui_stream",
        'if one["type"] != other["type"] or one[name] != other[name]:',
        "if False:",
    ),
    dialect(
        "signed_deltas_joined",
        "ui_stream",
        'if chunk.keys() != {"type", name, field} or',
        "if field not in chunk or",
    ),
    dialect(
        "adopted_part_is_closed",
        "ui_stream",
        "stays_open = index == open_index",
        "stays_open = False",
    ),
    dialect(
        "open_part_is_closed",
        "ui_stream",
        'if not stays_open and part.fields.get("state") != _STREAMING:',
        "if not stays_open:",
    ),
    dialect("outcome_forgotten", "ui_stream", "    yield tool_outcome(call, part.fields)\n", ""),
    dialect("input_forgotten", "ui_stream", '        "input": value,\n', ""),
    dialect(
        "metadata_on_the_start_alone",
        "ui_stream",
        'yield {"type": raw.quote(f"{part.kind}-end"), "id": identifier, **metadata}',
        'yield {"type": raw.quote(f"{part.kind}-end"), "id": identifier}',
    ),
]


def is_caught(mutant: Mutant, cases: int = CASES) -> bool:
    """Run the tests against a mutant, the quick ones first."""
    mine = Path(__file__).parent
    tests = [str(ROOT / f"tests/dialects/test_{name}.py") for name in DIALECT_TESTS]
    tests += [str(mine / f"test_{name}.py") for name in FIRST]
    tests += sorted(set(map(str, mine.glob("test_*.py"))) - {*tests, str(mine / MYSELF)})
    return fails(mutant, tests, {"MIDSTREAM_CASES": str(cases)}, ["--hypothesis-seed=0"])


UNTOUCHED = Mutant("untouched", f"{ADDON}/state.py", "MAX_RESULTS = 256", "MAX_RESULTS = 256")


if __name__ == "__main__":
    sys.exit(tell(sys.argv[1:], MUTANTS, UNTOUCHED, is_caught))
