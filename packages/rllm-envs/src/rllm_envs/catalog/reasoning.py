"""Questions that are answered once, with an exact grader."""

from rllm_envs.catalog.entry import EnvEntry

REASONING = (
    EnvEntry(
        "rllm/Arithmetic-v0",
        "rllm_envs.reasoning.arithmetic:ArithmeticEnv",
        "add and subtract integers, one turn",
    ),
    EnvEntry(
        "rllm/Math-v0",
        "rllm_envs.reasoning.math_problem:MathEnv",
        "small maths problems, or any data set of questions and answers, one turn",
    ),
    EnvEntry(
        "rllm/MathRetry-v0",
        "rllm_envs.reasoning.math_retry:MathRetryEnv",
        "the problems of Math-v0 with several attempts, told when an answer is not right",
    ),
    EnvEntry(
        "rllm/LinearEquation-v0",
        "rllm_envs.reasoning.linear_equation:LinearEquationEnv",
        "solve a linear equation whose solution is a fraction, one turn",
    ),
    EnvEntry(
        "rllm/LinearSystem-v0",
        "rllm_envs.reasoning.linear_equation:LinearEquationEnv",
        "solve three linear equations in three unknowns, one turn",
        kwargs={"unknowns": 3, "max_denominator": 2},
    ),
    EnvEntry(
        "rllm/NumberTheory-v0",
        "rllm_envs.reasoning.number_theory:NumberTheoryEnv",
        "divisors, multiples, remainders of powers and prime factors, one turn",
    ),
    EnvEntry(
        "rllm/Countdown-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "reach a target with four given numbers, one turn",
    ),
    EnvEntry(
        "rllm/CountdownHard-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "reach a target up to 1,000 with all of six given numbers, one turn",
        kwargs={"num_numbers": 6, "max_number": 100, "max_target": 1000, "use_all": True},
    ),
    EnvEntry(
        "rllm/Game24-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "make 24 of four numbers from 1 to 13, one turn",
        kwargs={"max_number": 13, "target": 24, "use_all": True},
    ),
    EnvEntry(
        "rllm/KnightsKnaves-v0",
        "rllm_envs.reasoning.knights_knaves:KnightsKnavesEnv",
        "who of three tells the truth and who lies, one turn",
    ),
    EnvEntry(
        "rllm/KnightsKnavesHard-v0",
        "rllm_envs.reasoning.knights_knaves:KnightsKnavesEnv",
        "who of six tells the truth and who lies, one turn",
        kwargs={"num_people": 6},
    ),
    EnvEntry(
        "rllm/LetterCount-v0",
        "rllm_envs.reasoning.letter_count:LetterCountEnv",
        "count a letter in a few words, one turn",
    ),
    EnvEntry(
        "rllm/LetterCountHard-v0",
        "rllm_envs.reasoning.letter_count:LetterCountEnv",
        "count two letters in fifteen words, one turn",
        kwargs={"num_words": 15, "num_letters": 2},
    ),
    EnvEntry(
        "rllm/StringTransform-v0",
        "rllm_envs.reasoning.string_transform:StringTransformEnv",
        "carry out three operations on a word, one turn",
    ),
    EnvEntry(
        "rllm/StringTransformHard-v0",
        "rllm_envs.reasoning.string_transform:StringTransformEnv",
        "carry out eight operations on a word, one turn",
        kwargs={"num_steps": 8},
    ),
    EnvEntry(
        "rllm/ShortestPath-v0",
        "rllm_envs.reasoning.shortest_path:ShortestPathEnv",
        "find a shortest way between seven places, one turn",
    ),
    EnvEntry(
        "rllm/ShortestPathHard-v0",
        "rllm_envs.reasoning.shortest_path:ShortestPathEnv",
        "find a shortest way between fourteen places, one turn",
        kwargs={"num_places": 14, "num_roads": 30},
    ),
    EnvEntry(
        "rllm/BaseConversion-v0",
        "rllm_envs.reasoning.base_conversion:BaseConversionEnv",
        "write a number in another base, one turn",
    ),
    EnvEntry(
        "rllm/ZebraPuzzle-v0",
        "rllm_envs.reasoning.zebra_puzzle:ZebraPuzzleEnv",
        "who lives in which of three houses, and with what, one turn",
    ),
    EnvEntry(
        "rllm/ZebraPuzzleHard-v0",
        "rllm_envs.reasoning.zebra_puzzle:ZebraPuzzleEnv",
        "who lives in which of five houses, and with what, one turn",
        kwargs={"num_houses": 5, "num_attributes": 4},
    ),
    EnvEntry(
        "rllm/BooleanLogic-v0",
        "rllm_envs.reasoning.boolean_logic:BooleanLogicEnv",
        "evaluate formulas or find values that make clauses true, one turn",
    ),
    EnvEntry(
        "rllm/BooleanLogicHard-v0",
        "rllm_envs.reasoning.boolean_logic:BooleanLogicEnv",
        "formulas of depth five and clauses of ten variables, one turn",
        kwargs={"num_variables": 10, "depth": 5},
    ),
    EnvEntry(
        "rllm/Syllogism-v0",
        "rllm_envs.reasoning.syllogism:SyllogismEnv",
        "which conclusions follow from premises about groups, one turn",
    ),
    EnvEntry(
        "rllm/NumberSequence-v0",
        "rllm_envs.reasoning.number_sequence:NumberSequenceEnv",
        "find the number that continues a sequence, one turn",
    ),
    EnvEntry(
        "rllm/CalendarDate-v0",
        "rllm_envs.reasoning.calendar_date:CalendarDateEnv",
        "weekdays, dates and the days between them, one turn",
    ),
    EnvEntry(
        "rllm/ClockTime-v0",
        "rllm_envs.reasoning.clock_time:ClockTimeEnv",
        "times of day, durations and the hands of a clock, one turn",
    ),
    EnvEntry(
        "rllm/MatrixOps-v0",
        "rllm_envs.reasoning.matrix_ops:MatrixOpsEnv",
        "sums, products, powers and determinants of matrices, one turn",
    ),
    EnvEntry(
        "rllm/Sorting-v0",
        "rllm_envs.reasoning.sorting:SortingEnv",
        "put numbers or words into order, one turn",
    ),
    EnvEntry(
        "rllm/SetOperations-v0",
        "rllm_envs.reasoning.set_operations:SetOperationsEnv",
        "evaluate an expression of sets, one turn",
    ),
    EnvEntry(
        "rllm/Cryptarithm-v0",
        "rllm_envs.reasoning.cryptarithm:CryptarithmEnv",
        "find the digits that letters stand for in an addition, one turn",
    ),
    EnvEntry(
        "rllm/GraphColoring-v0",
        "rllm_envs.reasoning.graph_coloring:GraphColoringEnv",
        "colour seven regions so that neighbours differ, one turn",
    ),
    EnvEntry(
        "rllm/GraphColoringHard-v0",
        "rllm_envs.reasoning.graph_coloring:GraphColoringEnv",
        "colour fourteen regions so that neighbours differ, one turn",
        kwargs={"num_regions": 14, "num_borders": 32},
    ),
    EnvEntry(
        "rllm/Knapsack-v0",
        "rllm_envs.reasoning.knapsack:KnapsackEnv",
        "the most valuable of six things within a weight limit, one turn",
    ),
    EnvEntry(
        "rllm/KnapsackHard-v0",
        "rllm_envs.reasoning.knapsack:KnapsackEnv",
        "the most valuable of fourteen things within a weight limit, one turn",
        kwargs={"num_items": 14},
    ),
    EnvEntry(
        "rllm/FamilyRelations-v0",
        "rllm_envs.reasoning.family_relations:FamilyRelationsEnv",
        "how two of a family of three generations are related, one turn",
    ),
    EnvEntry(
        "rllm/FamilyRelationsHard-v0",
        "rllm_envs.reasoning.family_relations:FamilyRelationsEnv",
        "how two of a family of four generations are related, one turn",
        kwargs={"num_generations": 4},
    ),
    EnvEntry(
        "rllm/ObjectTracking-v0",
        "rllm_envs.reasoning.object_tracking:ObjectTrackingEnv",
        "who of four holds what after five swaps, one turn",
    ),
    EnvEntry(
        "rllm/ObjectTrackingHard-v0",
        "rllm_envs.reasoning.object_tracking:ObjectTrackingEnv",
        "who of eight holds what after twenty swaps, one turn",
        kwargs={"num_people": 8, "num_swaps": 20},
    ),
    EnvEntry(
        "rllm/SpatialReasoning-v0",
        "rllm_envs.reasoning.spatial_reasoning:SpatialReasoningEnv",
        "where a walk of six steps on a grid ends, one turn",
    ),
    EnvEntry(
        "rllm/SpatialReasoningHard-v0",
        "rllm_envs.reasoning.spatial_reasoning:SpatialReasoningEnv",
        "where a walk of twenty steps on a grid ends, one turn",
        kwargs={"num_steps": 20},
    ),
    EnvEntry(
        "rllm/CodeOutput-v0",
        "rllm_envs.reasoning.code_output:CodeOutputEnv",
        "what a small Python program prints, one turn",
    ),
    EnvEntry(
        "rllm/CodeOutputHard-v0",
        "rllm_envs.reasoning.code_output:CodeOutputEnv",
        "what a longer Python program prints, one turn",
        kwargs={"num_blocks": 8},
    ),
    EnvEntry(
        "rllm/ReasoningGym-v0",
        "rllm_envs.reasoning.reasoning_gym_env:ReasoningGymEnv",
        "one of the data sets of reasoning-gym, one turn",
        extra="reasoning-gym",
    ),
)
