"""The JSON document: keys that scripts rely on."""

import json

from tests.doctor.build import Tape, examine
from tests.doctor.test_agents import completed, played, update

from midstream.doctor.as_json import document, moment


def test_a_fault_has_addon_count_rules_places_and_times():
    report = examine(played(update("one ", append=False), update("two"), completed("one two")))
    found = json.loads(json.dumps(document(report)))
    [fault] = found["faults"]
    assert (fault["addon"], fault["count"], fault["mended"]) == ("final-message-once", 1, 0)
    assert [(rule["rule"], rule["count"]) for rule in fault["rules"]] == [("final_message", 1)]
    [place] = fault["exchanges"]
    assert place == {"capture": "tape0", "exchange": 1, "seq": 7, "count": 1, "mended": 0}
    assert fault["first"] == fault["last"] == "2027-01-15T08:00:00.007Z"
    assert '[addon.final-message-once]\nmode = "repair"' in fault["mend"]
    assert found["clean"] is False


def test_clean_traffic_has_an_empty_list_of_faults():
    found = document(examine(played(update("one", append=False), completed())))
    assert (found["clean"], found["faults"], found["findings"]) == (True, [], [])


def test_what_nothing_mends_says_so():
    tape = Tape()
    tape.socket(1)
    tape.break_off(1)
    found = json.loads(json.dumps(document(examine(tape))))
    [broken] = found["findings"]
    assert (broken["name"], broken["mends"], broken["mend"]) == ("broken-off", None, None)


def test_without_pairs_there_is_no_rate():
    total = json.loads(json.dumps(document(examine(Tape()))))["history_pairs"]["total"]
    assert (total["comparable"], total["rate"]) == (0, None)


def test_a_time_is_iso_8601_in_utc():
    assert moment(1_800_000_000_123_999_999) == "2027-01-15T08:00:00.123Z"
    assert moment(0) is None
