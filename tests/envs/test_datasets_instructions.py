import pytest

from rllm_envs import DatasetError
from rllm_envs.datasets.instructions import ifeval_task

ROW = {
    "key": 1000,
    "prompt": "Write 300 words without commas.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{"num_words": None, "relation": None}, {"num_words": 300, "relation": "at least"}],
}


def test_arguments_that_are_none_are_dropped():
    assert ifeval_task(ROW) == {
        "question": "Write 300 words without commas.",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"num_words": 300, "relation": "at least"}],
        "id": "1000",
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [({"kwargs": [{}]}, "kwargs"), ({"kwargs": None}, "kwargs"), ({"kwargs": [1, 2]}, "kwargs"),
     ({"instruction_id_list": []}, "instruction_id_list"), ({"prompt": ""}, "prompt")],
)  # fmt: skip
def test_a_wrong_field_is_named(change, field):
    with pytest.raises(DatasetError, match=f"'{field}'"):
        ifeval_task(ROW | change)
