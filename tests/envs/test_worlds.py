import numpy as np
import pytest

from rllm_envs.language.worlds import passages_of, random_question, random_world


def test_a_world_has_the_records_asked_for_and_its_facts_lead_to_records():
    world = random_world(np.random.default_rng(0), 30)
    assert [len(world[kind]) for kind in ("person", "company", "town")] == [30, 10, 15]
    for person in world["person"].values():
        assert person["town"] in world["town"]
        assert person["company"] in world["company"]
    for company in world["company"].values():
        assert company["seat"] in world["town"]
        assert company["founder"] in world["person"]


def test_each_fact_is_in_the_passage_of_its_record():
    world = random_world(np.random.default_rng(1), 8)
    texts = {passage["title"]: passage["text"] for passage in passages_of(world)}
    records = [record for records in world.values() for record in records.values()]
    assert len(texts) == len(records)
    for record in records:
        assert all(value in texts[record["name"]] for value in record.values())


def test_a_chain_of_two_facts_is_worked_out_by_hand():
    world = {
        "person": {"Ada Wexby": {"town": "Oakton", "company": "Blue Works", "job": "pilot",
                                 "pet": "cat", "born": "1950"},
                   "Emil Korik": {"town": "Elmham", "company": "Blue Works", "job": "weaver",
                                  "pet": "goat", "born": "1960"}},
        "company": {"Blue Works": {"seat": "Oakton", "founder": "Emil Korik", "product": "toys",
                                   "founded": "1990"}},
        "town": {"Oakton": {"river": "Isk", "region": "the High Moor"},
                 "Elmham": {"river": "Lom", "region": "the High Moor"}},
    }  # fmt: skip
    expected = {
        "Which river runs through the town where Ada Wexby lives?": "Isk",
        "Who founded the company that Ada Wexby works for?": "Emil Korik",
        "In which town is the company that Emil Korik works for based?": "Oakton",
        "What does the company that Emil Korik works for make?": "toys",
    }
    rng = np.random.default_rng(0)
    asked = [random_question(rng, world, 2) for _ in range(300)]
    answers = {found.question: found.answer for found in asked}
    assert {question: answers[question] for question in expected} == expected
    # Emil works for the company that he founded: asking for its founder would be asking for Emil.
    assert "Who founded the company that Emil Korik works for?" not in answers


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_the_stations_are_named_in_one_anothers_passages_down_to_the_answer(hops):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        world = random_world(rng, 4 if seed % 2 else 20)
        found = random_question(rng, world, hops)
        texts = {passage["title"]: passage["text"] for passage in passages_of(world)}
        assert len(found.stations) == len(set(found.stations)) == hops
        assert found.stations[0] in found.question
        for station, following in zip(found.stations, found.stations[1:], strict=False):
            assert following in texts[station]
            assert following not in found.question
        assert found.answer in texts[found.stations[-1]]
