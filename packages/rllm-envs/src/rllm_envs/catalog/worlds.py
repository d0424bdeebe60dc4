"""Tools, worlds and programs."""

from rllm_envs.catalog.entry import EnvEntry

WORLDS = (
    EnvEntry(
        "rllm/Calculator-v0",
        "rllm_envs.tool_use.calculator:CalculatorEnv",
        "multiply with a calculator at hand, a few turns",
    ),
    EnvEntry(
        "rllm/SQL-v0",
        "rllm_envs.tool_use.sql:SqlEnv",
        "answer questions about a small database by read-only SQL",
    ),
    EnvEntry(
        "rllm/SQLHard-v0",
        "rllm_envs.tool_use.sql:SqlEnv",
        "SQL-v0 with joins, groups and nested queries over more rows",
        kwargs={"level": "hard", "num_rows": 120},
    ),
    EnvEntry(
        "rllm/Search-v0",
        "rllm_envs.tool_use.search:SearchEnv",
        "answer a question by chained searches in generated documents",
    ),
    EnvEntry(
        "rllm/SearchHard-v0",
        "rllm_envs.tool_use.search:SearchEnv",
        "Search-v0 with longer chains and more documents",
        kwargs={"hops": 5, "num_documents": 300, "max_turns": 16},
    ),
    EnvEntry(
        "rllm/FileSystem-v0",
        "rllm_envs.tool_use.file_system:FileSystemEnv",
        "find and compute things in files by the commands of a virtual shell",
    ),
    EnvEntry(
        "rllm/Terminal-v0",
        "rllm_envs.tool_use.terminal:TerminalEnv",
        "change files as instructed by the commands of a virtual shell",
    ),
    EnvEntry(
        "rllm/TerminalHard-v0",
        "rllm_envs.tool_use.terminal:TerminalEnv",
        "Terminal-v0 with twice as many changes",
        kwargs={"num_steps": 6, "max_turns": 25},
    ),
    EnvEntry(
        "rllm/FunctionCalling-v0",
        "rllm_envs.tool_use.function_calling:FunctionCallingEnv",
        "turn a request into JSON calls of the right functions, one turn",
    ),
    EnvEntry(
        "rllm/FunctionCallingHard-v0",
        "rllm_envs.tool_use.function_calling:FunctionCallingEnv",
        "FunctionCalling-v0 with more functions and calls",
        kwargs={"num_functions": 24, "max_calls": 5},
    ),
    EnvEntry(
        "rllm/Household-v0",
        "rllm_envs.tool_use.household:HouseholdEnv",
        "find, clean, heat, cool and place things in a house of text",
    ),
    EnvEntry(
        "rllm/HouseholdHard-v0",
        "rllm_envs.tool_use.household:HouseholdEnv",
        "Household-v0 with two things to find among many",
        kwargs={"num_things": 40, "num_wanted": 2, "max_turns": 80},
    ),
    EnvEntry(
        "rllm/TextAdventure-v0",
        "rllm_envs.tool_use.text_adventure:TextAdventureEnv",
        "explore rooms, unlock doors and deliver a treasure",
    ),
    EnvEntry(
        "rllm/TextAdventureHard-v0",
        "rllm_envs.tool_use.text_adventure:TextAdventureEnv",
        "TextAdventure-v0 with more rooms and locked doors",
        kwargs={"num_rooms": 20, "num_locks": 5, "max_turns": 150},
    ),
    EnvEntry(
        "rllm/WebShop-v0",
        "rllm_envs.tool_use.web_shop:WebShopEnv",
        "search a shop of text pages and buy what fits a request",
    ),
    EnvEntry(
        "rllm/WebShopHard-v0",
        "rllm_envs.tool_use.web_shop:WebShopEnv",
        "WebShop-v0 with many more products",
        kwargs={"num_products": 250, "max_turns": 40},
    ),
    EnvEntry(
        "rllm/WebWiki-v0",
        "rllm_envs.tool_use.web_wiki:WebWikiEnv",
        "follow links through a generated wiki to a page or an answer",
    ),
    EnvEntry(
        "rllm/WebWikiHard-v0",
        "rllm_envs.tool_use.web_wiki:WebWikiEnv",
        "WebWiki-v0 with longer ways through more pages",
        kwargs={"hops": 5, "num_pages": 200, "max_turns": 40},
    ),
    EnvEntry(
        "rllm/CustomerService-v0",
        "rllm_envs.tool_use.customer_service:CustomerServiceEnv",
        "serve a customer by functions within a policy: refund, exchange, cancel or refuse",
    ),
    EnvEntry(
        "rllm/Calendar-v0",
        "rllm_envs.tool_use.calendar_env:CalendarEnv",
        "schedule, move and cancel meetings in generated calendars by functions",
    ),
    EnvEntry(
        "rllm/Spreadsheet-v0",
        "rllm_envs.tool_use.spreadsheet:SpreadsheetEnv",
        "fill cells of a spreadsheet with formulas that stay right",
    ),
    EnvEntry(
        "rllm/SearchQA-v0",
        "rllm_envs.tool_use.search_qa:SearchQAEnv",
        "questions with short answers to be searched in a corpus, made up or of files",
    ),
    EnvEntry(
        "rllm/PythonCode-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a small Python function, checked by hidden tests, one turn",
    ),
    EnvEntry(
        "rllm/PythonCodeHard-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a Python function of five steps, one turn",
        kwargs={"num_steps": 5, "num_tests": 12},
    ),
    EnvEntry(
        "rllm/CodeRepair-v0",
        "rllm_envs.coding.code_repair:CodeRepairEnv",
        "mend a function with one wrong step, with feedback, a few turns",
    ),
    EnvEntry(
        "rllm/Code-v0",
        "rllm_envs.coding.code_problem:CodeEnv",
        "programming problems of a data set, graded by their tests, one turn",
    ),
)
