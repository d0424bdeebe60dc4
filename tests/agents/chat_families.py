"""Chat templates with the structure of well-known model families, and a tokenizer for each."""

# ruff: noqa: RUF001  (the control strings of one family hold full-width bars)

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rllm_agents.renderer import Renderer, Transcript
from rllm_agents.types import Completion, Message

# ChatML with a default system message; results of tools stand together in a user message.
QWEN25 = """
{%- if messages[0].role != 'system' -%}
{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}
{%- endif -%}
{%- for m in messages -%}
  {%- if m.role == 'tool' -%}
    {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}
      {{ '<|im_start|>user' }}
    {%- endif -%}
    {{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}
    {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}
      {{ '<|im_end|>\n' }}
    {%- endif -%}
  {%- else -%}
    {{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}
"""

# ChatML that strips thoughts of turns before the last question and writes later ones anew.
QWEN3 = """
{%- set ns = namespace(last=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
  {%- if m.role == 'assistant' -%}
    {%- set thought = '' -%}
    {%- set said = m.content -%}
    {%- if '</think>' in said -%}
      {%- set thought = said.split('</think>')[0].split('<think>')[-1].strip('\n') -%}
      {%- set said = said.split('</think>')[-1].lstrip('\n') -%}
    {%- elif m.reasoning_content is defined -%}
      {%- set thought = m.reasoning_content -%}
    {%- endif -%}
    {{ '<|im_start|>assistant\n' }}
    {%- if loop.index0 > ns.last and (thought or loop.last) -%}
      {{ '<think>\n' + thought + '\n</think>\n\n' }}
    {%- endif -%}
    {{ said + '<|im_end|>\n' }}
  {%- elif m.role == 'tool' -%}
    {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}
      {{ '<|im_start|>user' }}
    {%- endif -%}
    {{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}
    {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}
      {{ '<|im_end|>\n' }}
    {%- endif -%}
  {%- else -%}
    {{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{ '<|im_start|>assistant\n' }}
  {%- if enable_thinking is defined and not enable_thinking -%}
    {{ '<think>\n\n</think>\n\n' }}
  {%- endif -%}
{%- endif -%}
"""

# Header ids, a date in the system message, trimmed contents, results of tools as JSON.
LLAMA3 = """
{{- bos_token -}}
{%- if messages[0].role == 'system' -%}
  {%- set system = messages[0].content | trim -%}{%- set rest = messages[1:] -%}
{%- else -%}
  {%- set system = '' -%}{%- set rest = messages -%}
{%- endif -%}
{{ '<|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n' }}
{{- system + '<|eot_id|>' -}}
{%- for m in rest -%}
  {%- if m.role == 'tool' -%}
    {{ '<|start_header_id|>ipython<|end_header_id|>\n\n' + (m.content | tojson) + '<|eot_id|>' }}
  {%- else -%}
    {{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' }}
    {{- (m.content | trim) + '<|eot_id|>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif -%}
"""

# No opening of the assistant's turn; spaces about its text; each exchange begins with bos.
LLAMA2 = """
{%- if messages[0].role == 'system' -%}
  {%- set system = '<<SYS>>\n' + messages[0].content + '\n<</SYS>>\n\n' -%}
  {%- set rest = messages[1:] -%}
{%- else -%}
  {%- set system = '' -%}{%- set rest = messages -%}
{%- endif -%}
{%- for m in rest -%}
  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{ raise_exception('roles must alternate user/assistant') }}
  {%- endif -%}
  {%- if m.role == 'user' -%}
    {%- set said = system + m.content if loop.first else m.content -%}
    {{ bos_token + '[INST] ' + (said | trim) + ' [/INST]' }}
  {%- else -%}
    {{ ' ' + (m.content | trim) + ' ' + eos_token }}
  {%- endif -%}
{%- endfor -%}
"""

# No opening of the assistant's turn either; the system message stands in the last user message.
MISTRAL = """
{%- if messages[0].role == 'system' -%}
  {%- set system = messages[0].content + '\n\n' -%}{%- set rest = messages[1:] -%}
{%- else -%}
  {%- set system = '' -%}{%- set rest = messages -%}
{%- endif -%}
{%- set users = rest | selectattr('role', 'equalto', 'user') | list -%}
{%- set ns = namespace(seen=0) -%}
{{ bos_token }}
{%- for m in rest -%}
  {%- if m.role == 'user' -%}
    {%- set ns.seen = ns.seen + 1 -%}
    {{ '[INST] ' + (system if ns.seen == users | length else '') + m.content + '[/INST]' }}
  {%- elif m.role == 'assistant' -%}
    {{ ' ' + m.content | trim + eos_token }}
  {%- elif m.tool_call_id is not defined or m.tool_call_id | length != 9 -%}
    {{ raise_exception('tool call ids must have length 9') }}
  {%- else -%}
    {{ '[TOOL_RESULTS] ' + m.content + '[/TOOL_RESULTS]' }}
  {%- endif -%}
{%- endfor -%}
"""

# No system messages, strict turns, "model" for the assistant, trimmed contents.
GEMMA = """
{{- bos_token -}}
{%- if messages[0].role == 'system' -%}
  {{ raise_exception('System role not supported') }}
{%- endif -%}
{%- for m in messages -%}
  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{ raise_exception('roles must alternate user/assistant') }}
  {%- endif -%}
  {%- set role = 'model' if m.role == 'assistant' else m.role -%}
  {{ '<start_of_turn>' + role + '\n' + (m.content | trim) + '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
"""

# Strips every thought of history, opens one in the prompt, and opens no turn after a tool.
R1 = """
{{- bos_token -}}
{%- for m in messages -%}
  {%- if m.role == 'system' -%}{{ m.content }}
  {%- elif m.role == 'user' -%}{{ '<｜User｜>' + m.content }}
  {%- elif m.role == 'tool' -%}
    {{ '<｜tool▁outputs▁begin｜>' + m.content + '<｜tool▁outputs▁end｜>' }}
  {%- else -%}
    {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<｜Assistant｜>' }}
    {%- endif -%}
    {{ m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and messages[-1].role != 'tool' -%}
  {{ '<｜Assistant｜><think>\n' }}
{%- endif -%}
"""

# Channels: history keeps the final one only, and ends turns with another token than the model.
HARMONY = """
{{- '<|start|>system<|message|>You are a model.<|end|>' -}}
{%- for m in messages -%}
  {%- if m.role == 'system' -%}
    {{ '<|start|>developer<|message|># Instructions\n\n' + m.content + '<|end|>' }}
  {%- elif m.role == 'user' -%}
    {{ '<|start|>user<|message|>' + m.content + '<|end|>' }}
  {%- elif m.role == 'tool' -%}
    {{ raise_exception('no previous assistant message with a tool call') }}
  {%- else -%}
    {%- if '<|channel|>' in m.content -%}{{ raise_exception('no channels in content') }}
    {%- endif -%}
    {{ '<|start|>assistant<|channel|>final<|message|>' + m.content }}
    {{- '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start|>assistant' }}{%- endif -%}
"""

_CORPUS = [
    "What is 12 * 34? The answer is 408. user assistant system model tool",
    "<think>\nLet me think.\n</think>\n\n<tool_call>{}</tool_call> analysis final commentary",
    "hello there, how are you? I am fine. Today Date: 26 Jul 2024",
] * 4


@dataclass(frozen=True)
class Family:
    """A template and what its tokenizer knows."""

    template: str
    specials: tuple[str, ...]
    eos: str
    bos: str | None = None
    turn_end: str = ""
    """The control string after the assistant's text; empty: that of `eos`."""
    ordinary: tuple[str, ...] = field(default=("<think>", "</think>"))
    """Added tokens that are text all the same."""

    @property
    def end(self) -> str:
        return self.turn_end or self.eos


FAMILIES = {
    "qwen25": Family(
        QWEN25, ("<|im_start|>", "<|im_end|>"), "<|endoftext|>", turn_end="<|im_end|>"
    ),
    "qwen3": Family(QWEN3, ("<|im_start|>", "<|im_end|>"), "<|endoftext|>", turn_end="<|im_end|>"),
    "llama3": Family(
        LLAMA3,
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
        "<|end_of_text|>",
        "<|begin_of_text|>",
        turn_end="<|eot_id|>",
    ),
    "llama2": Family(LLAMA2, (), "</s>", "<s>"),
    "mistral": Family(MISTRAL, ("[INST]", "[/INST]"), "</s>", "<s>"),
    "gemma": Family(
        GEMMA, ("<start_of_turn>", "<end_of_turn>"), "<eos>", "<bos>", turn_end="<end_of_turn>"
    ),
    "r1": Family(
        R1,
        (),
        "<｜end▁of▁sentence｜>",
        "<｜begin▁of▁sentence｜>",
        ordinary=(
            *("<think>", "</think>", "<｜User｜>", "<｜Assistant｜>"),
            *("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
        ),
    ),
    "harmony": Family(
        HARMONY,
        ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>"),
        "<|return|>",
    ),
}


@cache
def family_tokenizer(name: str) -> Any:
    """A byte-level BPE with the control tokens of a family."""
    family = FAMILIES[name]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    bpe.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=380, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator(_CORPUS, trainer)
    bpe.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in family.specials])
    bpe.add_tokens([AddedToken(s, special=False, normalized=False) for s in family.ordinary])
    marks = {"eos_token": family.eos, **({"bos_token": family.bos} if family.bos else {})}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, **marks)
    tokenizer.chat_template = family.template.strip("\n")
    return tokenizer


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def tool(text: str) -> Message:
    return {"role": "tool", "tool_call_id": "call_0", "name": "f", "content": text}


def encode(name: str, text: str) -> tuple[int, ...]:
    """Ids of template text, control strings read as control tokens."""
    return tuple(family_tokenizer(name)(text, add_special_tokens=False)["input_ids"])


def spell(name: str, ids: Any) -> str:
    """Text of ids, control tokens spelled."""
    return family_tokenizer(name).decode(list(ids), clean_up_tokenization_spaces=False)


def sampled(name: str, raw: str, *, finish: Any = "stop") -> Completion:
    """A completion of exactly this raw text, control tokens and stop token included."""
    ids = encode(name, raw)
    return Completion(
        text=Renderer(family_tokenizer(name)).decode(ids),
        finish_reason=finish,
        token_ids=ids,
        logprobs=tuple(-(j + 1) / 1024 for j in range(len(ids))),
    )


def play(transcript: Transcript, messages: list[Message], completion: Completion) -> None:
    transcript.prompt_ids(messages)
    transcript.add(completion)
    messages.append({"role": "assistant", "content": completion.text})
