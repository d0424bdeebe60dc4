"""Sample from any OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama, api.openai.com.

Servers that return token ids (vLLM, and SGLang where it knows `return_token_ids`) are asked for
exact completions of exact prompts; all others are spoken to in text.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import orjson

from rllm_agents.errors import EngineError, UserError
from rllm_agents.renderer import ChatTokenizer
from rllm_agents.rollout_engines.decoding import completion_text
from rllm_agents.rollout_engines.openai_chat import ChatCompletions
from rllm_agents.rollout_engines.openai_client import ClientSettings, OpenAIClient
from rllm_agents.rollout_engines.openai_replies import (
    NoTokenIdsError,
    RefusedError,
    SampledTokens,
    ServedModel,
    read_models,
    read_token_completion,
)
from rllm_agents.rollout_engines.openai_sessions import SharedFetch
from rllm_agents.rollout_engines.request_checks import refuse_adapter
from rllm_agents.types import Completion, GenerationRequest, SamplingParams

if TYPE_CHECKING:
    from torch import Tensor

Mode: TypeAlias = Literal["auto", "tokens", "chat"]
"""``tokens``: exact ids both ways; ``chat``: messages and text; ``auto``: ids if there are any."""

_MODES = get_args(Mode)
# What a server answers that does not know an endpoint or a field; 404 is also an unknown model,
# which the chat endpoint then says as well.
_UNSUPPORTED_STATUSES = frozenset({400, 404, 405, 415, 422, 501})
# Servers take what is not sent from the model's generation_config.json, where such things as
# top_k=20 or repetition_penalty=1.05 stand: all that shapes the distribution is said.
_NEUTRAL = {
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
_MAX_NAMES = 20

_log = logging.getLogger(__name__)


class OpenAIEngine:
    """A `RolloutEngine` over HTTP.

    With `prompt_ids`, a server that returns token ids samples exactly what is recorded: ids and
    logprobs come from it, text is decoded here. Without them, or where the server knows only text,
    completions have no ids, and nothing can be learned from them. Which it is, is found out at the
    first request.
    """

    def __init__(  # noqa: PLR0913  (what users write into rollout_engine_args, flat)
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        tokenizer: ChatTokenizer | None = None,
        mode: Mode = "auto",
        stop_token_ids: Iterable[int] | None = None,
        max_model_length: int | None = None,
        max_retries: int = 4,
        request_timeout: float = 600.0,
        max_connections: int = 512,
    ) -> None:
        """Check the arguments. The server is first spoken to by `prepare` or `generate`.

        Args:
            base_url: Such as ``http://localhost:30000/v1``.
            model: The server's name of it; by default the only one that it serves.
            api_key: By default the environment's OPENAI_API_KEY; local servers need none.
            tokenizer: Decodes ids to text; by default the server's text is taken.
            mode: "tokens" and "chat" insist on what "auto" finds out.
            stop_token_ids: End a completion, beside the ids that the server knows itself. Used in
                token mode.
            max_model_length: Most tokens of a prompt and its completion; the server's own bound,
                where it says one, holds too.
            max_retries: Attempts of a request after the first, in [0, 100].
            request_timeout: Seconds of one attempt.
            max_connections: Most requests in flight; more wait.

        Raises:
            UserError: A value is out of range.
        """
        if mode not in _MODES:
            raise UserError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}")
        if model is not None and (not isinstance(model, str) or not model):
            raise UserError(f"model must be the server's name of a model, got {model!r:.120}")
        if max_model_length is not None and max_model_length < 2:
            raise UserError(f"max_model_length must be at least 2, got {max_model_length}")
        if api_key is not None and not isinstance(api_key, str):
            raise UserError(f"api_key must be a string, got {type(api_key).__name__}")
        key = (api_key or os.environ.get("OPENAI_API_KEY", "")).strip()
        settings = ClientSettings(
            base_url=base_url,
            api_key=key or None,
            request_timeout=request_timeout,
            max_retries=max_retries,
            max_connections=max_connections,
        )
        self._base_url = base_url
        self._client = OpenAIClient(settings)
        self._chat = ChatCompletions(self._client)
        self._model = model
        self._tokenizer = tokenizer
        self._mode: Mode = mode
        self._stop_token_ids = [int(token_id) for token_id in stop_token_ids or ()]
        self._given_length = max_model_length
        self._served: SharedFetch[[], ServedModel] = SharedFetch(self._find_model)
        self._gives_tokens: SharedFetch[[int], bool] = SharedFetch(self._probe_tokens)
        self._has_raw_logprobs = False
        self._has_warned = False

    @property
    def weights_version(self) -> int:
        """Always 0: the server's weights are its own."""
        return 0

    @property
    def max_model_length(self) -> int | None:
        """Most tokens of a prompt and its completion; None where nobody has said it (yet)."""
        served = self._served.value
        known = [self._given_length, served.max_length if served else None]
        return min((length for length in known if length is not None), default=None)

    async def prepare(self) -> None:
        """Reach the server: the model's name is then known, and its length where it is said.

        Raises:
            EngineError: The server cannot be reached, refuses, or serves several models while
                none was named.
        """
        await self._served.get()

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample one completion; cancelling the caller ends the request, and the server stops.

        Raises:
            EngineError: The server cannot be reached after all attempts, refuses the request, or
                answers something that is no completion of it; or it names an adapter.
        """
        refuse_adapter(request)
        served = self._served.value or await self._served.get()
        if self._mode == "chat" or (self._mode == "auto" and request.prompt_ids is None):
            return await self._chat.complete(served.name, request)
        if not request.prompt_ids:
            raise EngineError(
                "token mode needs prompt_ids with at least one id; give the execution engine the "
                "model's tokenizer"
            )
        gives_tokens = self._gives_tokens.value
        if gives_tokens is None:
            gives_tokens = await self._gives_tokens.get(request.prompt_ids[0])
        if not gives_tokens:
            return await self._chat.complete(served.name, request)
        return await self._complete(served.name, request)

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Refuse: the server owns its weights.

        Raises:
            EngineError: Always.
        """
        raise EngineError(
            f"the server at {self._base_url} owns its weights, version {version} cannot be loaded; "
            'train with engine_name="vllm" or "transformers"'
        )

    def close(self) -> None:
        """End all connections; requests in flight fail. May be called again."""
        self._client.close()

    async def _find_model(self) -> ServedModel:
        """Ask what is served, and choose."""
        try:
            models = await self._client.ask("/models", read_models)
        except RefusedError as error:
            if self._model is None or error.status not in _UNSUPPORTED_STATUSES:
                raise
            return ServedModel(self._model, None)  # a server without such a list
        if self._model is None:
            if len(models) != 1:
                names = ", ".join(model.name for model in models[:_MAX_NAMES]) or "none"
                more = len(models) - _MAX_NAMES
                raise EngineError(
                    f"{self._base_url} serves {len(models)} models; name one of them as model: "
                    + self._client.clean(names)
                    + (f" and {more} more" if more > 0 else "")
                )
            return models[0]
        named = [model for model in models if model.name == self._model]
        return named[0] if named else ServedModel(self._model, None)

    async def _probe_tokens(self, token_id: int) -> bool:
        """Find out by one token whether the server returns ids, and which logprobs.

        With top_k=1 one token is left, whose probability is 1: its logprob is 0 where logprobs are
        of the distribution that is drawn from.
        """
        served = await self._served.get()
        sampling = SamplingParams(top_k=1, max_tokens=1)
        try:
            sampled = await self._sample(served.name, (token_id,), sampling, 1)
        except (RefusedError, NoTokenIdsError) as error:
            is_other = isinstance(error, RefusedError) and error.status not in _UNSUPPORTED_STATUSES
            if is_other:
                raise
            if self._mode == "tokens":
                raise EngineError(
                    f"mode='tokens' needs a server that returns token ids, such as vLLM: {error}"
                ) from error
            _log.warning(
                "%s returns no token ids: completions are text only, and nothing can be learned "
                "from them",
                self._base_url,
            )
            return False
        self._has_raw_logprobs = sampled.logprobs[0] < -1e-6
        return True

    async def _complete(self, model: str, request: GenerationRequest) -> Completion:
        prompt_ids, sampling = request.prompt_ids or (), request.sampling
        longest, max_tokens = self.max_model_length, sampling.max_tokens
        if max_tokens is None:
            if longest is None:
                raise EngineError(
                    "max_tokens must be given: the server does not say its model's length; "
                    "max_model_length would say it too"
                )
            max_tokens = max(1, longest - len(prompt_ids))
        if longest is not None and len(prompt_ids) + max_tokens > longest:
            raise EngineError(
                f"a prompt of {len(prompt_ids)} tokens and max_tokens={max_tokens} exceed the "
                f"{longest} tokens of {model!r}; shorten the prompt or lower max_tokens"
            )
        self._note_logprobs(sampling)
        sampled = await self._sample(model, prompt_ids, sampling, max_tokens)
        return Completion(
            text=self._text(sampled),
            finish_reason=sampled.finish_reason,
            token_ids=sampled.token_ids,
            logprobs=sampled.logprobs,
        )

    async def _sample(
        self, model: str, prompt_ids: tuple[int, ...], sampling: SamplingParams, max_tokens: int
    ) -> SampledTokens:
        """Ask for one completion in ids."""
        body: dict[str, Any] = {
            "model": model,
            "prompt": prompt_ids,
            "max_tokens": max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or -1,
            **_NEUTRAL,
            "logprobs": 0,
            "return_token_ids": True,
        }
        if sampling.seed is not None:
            body["seed"] = sampling.seed % 2**63
        if self._stop_token_ids:
            body["stop_token_ids"] = self._stop_token_ids
        return await self._client.ask(
            "/completions",
            lambda reply: read_token_completion(
                reply, prompt_ids=prompt_ids, max_tokens=max_tokens
            ),
            orjson.dumps(body),
            about=f"{len(prompt_ids)} prompt tokens, max_tokens={max_tokens}",
        )

    def _note_logprobs(self, sampling: SamplingParams) -> None:
        """Warn once where the server's logprobs are not of the distribution drawn from."""
        if not self._has_raw_logprobs or self._has_warned or sampling.temperature == 0.0:
            return
        if (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0):
            return
        self._has_warned = True
        _log.warning(
            "%s reports logprobs before temperature, top_p and top_k, which this run uses; start "
            "vLLM with --logprobs-mode processed_logprobs",
            self._base_url,
        )

    def _text(self, sampled: SampledTokens) -> str:
        """Decode a completion without its stop token and other control tokens."""
        if self._tokenizer is None:
            return sampled.text
        try:
            return completion_text(self._tokenizer, sampled.token_ids, sampled.finish_reason)
        except Exception as error:  # tokenizers share no base of their errors
            raise EngineError(
                f"the tokenizer cannot decode what {self._base_url} sampled, up to id "
                f"{max(sampled.token_ids)}: {type(error).__name__}: {error}; is it the tokenizer "
                "of the served model?"
            ) from error
