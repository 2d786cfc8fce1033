"""Breaks one rule of the repair at a time, and tells whether any test notices.

uv run python -m tests.addons.history_order.mutants [NAME ...]
"""

import sys
from pathlib import Path

from tests.mutation import ROOT, Mutant, fails, tell

ADDON = "addons/midstream_addons/history_order"
DIALECTS = "proxy/midstream/dialects"
LAST = ("test_fuzz.py",)
"""The slow ones."""
OF_DIALECTS = (
    "test_anthropic_messages.py", "test_openai_chat.py", "test_openai_responses.py",
    "test_provider.py",
)  # fmt: skip
MYSELF = "test_mutants.py"
CASES = 300


def addon(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{ADDON}/{module}.py", old, new)


def dialect(name: str, module: str, old: str, new: str) -> Mutant:
    return Mutant(name, f"{DIALECTS}/{module}.py", old, new)


MUTANTS = [
    # the whole
    addon("no_repair", "repair", "if not planned.moved:", "if True:"),
    addon(
        "sorts_the_whole_stretch",
        "plan",
        "        targets = _targets(units)\n",
        "        units.sort(key=lambda u: u.first_seq if u.first_seq is not None else 1 << 30)\n"
        "        targets = _targets(units)\n"
        "        stretch = [item for unit in units for item in unit.items]\n"
        "        moved += stretch\n",
    ),
    # what is compared, and what moves
    addon(
        "moves_within_a_step",
        "plan",
        "self._steps[places[rank]] == unit.head.step:",
        "False:",
    ),
    addon(
        "counts_within_a_step",
        "pairs",
        "if not entry.response:  # where",
        "if False:  # where",
    ),
    addon(
        "moves_into_another_turn",
        "plan",
        "places = self._places.get(unit.head.turn, [])",
        "places = sorted(place for turn in self._places.values() for place in turn)",
    ),
    addon(
        "counts_across_turns",
        "pairs",
        "turn = turns.get(entry.turn)\n"
        "        if turn is None:\n"
        "            turn = turns[entry.turn] = []\n",
        "turn = turns.get(0)\n        if turn is None:\n            turn = turns[0] = []\n",
    ),
    addon(
        "every_response_is_a_turn",
        "request",
        "0 if is_new_turn or not parent else",
        "0 if True else",
    ),
    addon(
        "turns_never_end", "request", "0 if is_new_turn or not parent else", "0 if not parent else"
    ),
    addon("legacy_moves", "units", "            and head.step is not None\n", ""),
    addon("counts_legacy", "pairs", "entry.is_hosted or entry.step is None:", "entry.is_hosted:"),
    addon("hosted_moves", "units", "            and not head.is_hosted\n", ""),
    addon(
        "counts_hosted", "pairs", "entry.is_hosted or entry.step is None:", "entry.step is None:"
    ),
    addon(
        "a_hosted_call_is_a_target",
        "plan",
        "and head is not None and not head.is_hosted:",
        "and head is not None:",
    ),
    addon("cut_answers_move", "units", "            and head.is_complete\n", ""),
    addon("no_overtake_guard", "plan", "floor.raise_behind(place, place + 1)", "pass"),
    addon("moved_texts_are_overtaken", "plan", "floor.raise_behind(target, target)", "pass"),
    addon("reasoning_alone_stays", "units", "{Kind.TEXT, Kind.REASONING}", "{Kind.TEXT}"),
    addon(
        "reasoning_not_glued",
        "units",
        "if after is not None and _is_glued",
        "if False and _is_glued",
    ),
    addon(
        "reasoning_glued_to_anything",
        "units",
        "return is_one and following.get(entry.seq) == after.seq",
        "return is_one",
    ),
    addon(
        "reasoning_glued_across_steps",
        "units",
        "return is_one and following",
        "return following",
    ),
    # barriers
    addon(
        "no_barrier_user",
        "units",
        "is_barrier = item.kind is not Kind.RESULT or item.call_id not in calls",
        "is_barrier = item.kind is not Kind.USER and (\n"
        "                item.kind is not Kind.RESULT or item.call_id not in calls\n            )",
    ),
    addon(
        "no_barrier_unmatched_text",
        "units",
        "is_barrier = item.kind is not Kind.RESULT or item.call_id not in calls",
        "is_barrier = item.kind is not Kind.TEXT and (\n"
        "                item.kind is not Kind.RESULT or item.call_id not in calls\n            )",
    ),
    addon(
        "no_barrier_orphan_result",
        "units",
        "is_barrier = item.kind is not Kind.RESULT or item.call_id not in calls",
        "is_barrier = item.kind is not Kind.RESULT",
    ),
    addon("no_barrier_ambiguous", "units", "is_barrier = is_ambiguous\n", "is_barrier = False\n"),
    # who is who
    addon(
        "first_of_duplicates",
        "match",
        "self.ambiguous[index] = self.ambiguous[other] = True\n"
        "            self.found[other] = None",
        "pass",
    ),
    addon(
        "shared_keys_decide",
        "match",
        "or not shared.isdisjoint(own):",
        "or False:",
    ),
    addon(
        "other_multiplicity_is_matched",
        "match",
        "if len(entries) == len(indices) and name[1] not in doubtful:\n"
        "                for index, entry in zip(indices, entries, strict=True):",
        "if entries and name[1] not in doubtful:\n"
        "                for index, entry in zip(indices, entries, strict=False):",
    ),
    addon("doubt_is_forgotten", "match", " and name[1] not in doubtful:", ":"),
    addon(
        "no_fork_check",
        "path",
        "        if all(hit[0] in on_path or not on_path.isdisjoint(hit) for hit in hits):\n",
        "        if True:\n",
    ),
    addon("no_chaining", "path", "    while texts:\n", "    while False:\n"),
    addon("chains_to_any_child", "path", "if len(fitting) != 1:", "if not fitting:"),
    addon("chains_to_what_is_not_quoted", "path", "texts.get(output.text, 0) > 0", "True"),
    addon(
        "same_answer_twice_is_a_fork",
        "ledger",
        "        if known:\n            if",
        "        if False:\n            if",
    ),
    # what is checked before it leaves
    addon(
        "no_api_check",
        "repair",
        "if wrong and wrong - violations(matched.items, provider.rules):",
        "if False:",
    ),
    addon("signed_bodies_change", "repair", "    if is_locked:\n", "    if False:\n"),
    addon(
        "server_side_history_moves",
        "request",
        "    if history.is_delta:\n",
        "    if False:\n",
    ),
    addon(
        "previous_response_is_no_parent",
        "request",
        "parent = named or (",
        "parent = (",
    ),
    # learning
    dialect(
        "order_of_arrival",
        "provider_responses",
        "for index in sorted(self._slots)",
        "for index in self._slots",
    ),
    dialect(
        "no_aliases",
        "provider_responses",
        "        if event.item_id and len(slot.ids) < MAX_STREAMED_ALIASES:\n"
        "            slot.ids[event.item_id] = None\n",
        "",
    ),
    dialect(
        "unfinished_items_are_learned", "provider_responses", "if self._slots[index].is_done]", "]"
    ),
    dialect(
        "unfinished_blocks_are_learned", "provider_claude", "if self._slots[index].is_done]", "]"
    ),
    dialect(
        "a_cut_message_is_learned",
        "provider_chat",
        "        if not self._is_complete:\n            return Learned",
        "        if False:\n            return Learned",
    ),
    dialect(
        "other_choices_are_learned", "provider_chat", "if choice.index == 0 and said", "if said"
    ),
    # writing
    dialect("no_thinking_lock", "provider_blocks", "    if not thinks:\n", "    if True:\n"),
    dialect(
        "thinking_loses_blocks",
        "provider_blocks",
        "changed = {items[item].at[0] for item in target_of} | set(target_of.values())",
        "changed = set(target_of.values())",
    ),
    dialect(
        "thinking_comes_alone",
        "provider_blocks",
        "            thinks.add(message)",
        "            pass",
    ),
    dialect(
        "thinking_never_restored",
        "provider_blocks",
        "if not bonds.is_whole_response(becomes[message]):",
        "if True:",
    ),
    dialect("chat_is_not_fused", "openai_chat", "if content and bonds", "if False and bonds"),
    dialect(
        "chat_fuses_other_responses",
        "openai_chat",
        "bonds.is_one_response(item, call) and",
        "",
    ),
    dialect(
        "chat_overwrites_a_text", "openai_chat", "and _is_silent(messages[target]):", "and True:"
    ),
]


def is_caught(mutant: Mutant, cases: int = CASES) -> bool:
    """Run the tests against a mutant, the slow ones last."""
    mine = Path(__file__).parent
    last = [str(mine / name) for name in LAST]
    tests = sorted(set(map(str, mine.glob("test_*.py"))) - {*last, str(mine / MYSELF)})
    tests += [str(ROOT / "tests" / "dialects" / name) for name in OF_DIALECTS]
    return fails(mutant, [*tests, *last], {"MIDSTREAM_CASES": str(cases)}, ["-n", "0"])


UNTOUCHED = Mutant("untouched", f"{ADDON}/state.py", "MAX_STREAMS = 64", "MAX_STREAMS = 64")


if __name__ == "__main__":
    sys.exit(tell(sys.argv[1:], MUTANTS, UNTOUCHED, is_caught))
