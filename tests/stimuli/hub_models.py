"""Tiny models of the transformers library with random weights, saved as model folders."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import ByteLevel, Whitespace
from tokenizers.processors import TemplateProcessing

SIDE = 32
LABELS = {0: "cat", 1: "dog", 2: "owl"}
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
WORDS = "a photo of the cat dog owl in wild ."
ATTENTION = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
PATCHES = {"image_size": SIDE, "patch_size": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "ViT": {**ATTENTION, **PATCHES, "intermediate_size": 32},
    "DeiT": {**ATTENTION, **PATCHES, "intermediate_size": 32},
    "Dinov2WithRegisters": {**ATTENTION, **PATCHES, "num_register_tokens": 4},
    "Swin": {
        "image_size": SIDE,
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 1]},
    "ConvNext": {"hidden_sizes": [8, 12], "depths": [1, 2], "num_stages": 2},
}
"""Enough of each architecture that its layers can be told apart."""


def save_classifier(folder: Path, name: str, **changes: Any) -> Any:
    """A classifier of three labels with its preprocessor's settings; the model in evaluation mode."""
    config = getattr(transformers, f"{name}Config")(**{**CONFIGS[name], "id2label": LABELS, **changes})
    model = _seeded(getattr(transformers, f"{name}ForImageClassification"), config)
    model.save_pretrained(folder)
    write_settings(folder)
    return model


def write_settings(folder: Path, **changes: Any) -> None:
    """preprocessor_config.json; None takes an entry away."""
    settings = {
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": STD,
        "size": {"height": SIDE, "width": SIDE},
        "do_center_crop": False,
        **changes,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    (folder / "preprocessor_config.json").write_text(json.dumps(given))


def save_clip(folder: Path, *, form: str = "clip") -> Any:
    """A CLIP, SigLIP or BLIP model with a tokenizer of a dozen words; the model in evaluation mode."""
    words = save_tokenizer(folder, is_marked=form != "siglip")
    text = {**ATTENTION, "intermediate_size": 32, "vocab_size": len(words), "max_position_embeddings": 16}
    ends = {"bos_token_id": words["<s>"], "eos_token_id": words["</s>"], "pad_token_id": words["<pad>"]}
    vision = {**ATTENTION, **PATCHES, "intermediate_size": 32}
    sizes = {} if form == "siglip" else {"projection_dim": 12}
    if form == "blip":
        text |= {"encoder_hidden_size": vision["hidden_size"], "sep_token_id": words["</s>"]}
    name = {"clip": "CLIP", "siglip": "Siglip", "blip": "Blip"}[form]
    config = getattr(transformers, f"{name}Config")(
        text_config={**text, **ends, **sizes}, vision_config={**vision, **sizes}, **sizes
    )
    model = _seeded(getattr(transformers, f"{name}Model"), config)
    model.save_pretrained(folder)
    write_settings(folder)
    return model


SPOKEN = (
    "{% for m in messages %}<{{ m['role'] }}>{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""How the tiny vision-language model is spoken to."""


def save_llava(folder: Path) -> Any:
    """A vision-language model that reads bytes, with its processor; the model in evaluation mode. Its weights
    are drawn wide, so that what it says depends on what it is shown."""
    of: Any = transformers
    alphabet = ["<pad>", "<image>", *sorted(ByteLevel.alphabet())]
    split = Tokenizer(BPE(vocab={sign: place for place, sign in enumerate(alphabet)}, merges=[]))
    split.pre_tokenizer = ByteLevel(add_prefix_space=False)
    vision = of.CLIPVisionConfig(**ATTENTION, intermediate_size=32, image_size=SIDE, patch_size=SIDE // 2)
    words = of.LlamaConfig(
        vocab_size=len(alphabet), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=8192,
    )  # fmt: skip
    config = of.LlavaConfig(vision_config=vision, text_config=words, image_token_index=1, image_seq_length=4)
    model = _seeded(of.LlavaForConditionalGeneration, config)
    with torch.no_grad():
        for weight in model.model.multi_modal_projector.parameters():
            weight.mul_(8)
    model.save_pretrained(folder)
    side = {"height": SIDE, "width": SIDE}
    of.LlavaProcessor(
        import_module("transformers.models.clip.image_processing_pil_clip").CLIPImageProcessorPil(
            size={"shortest_edge": SIDE}, crop_size=side
        ),
        of.PreTrainedTokenizerFast(
            tokenizer_object=split, pad_token="<pad>", additional_special_tokens=["<image>"]
        ),
        patch_size=SIDE // 2,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=SPOKEN,
    ).save_pretrained(folder)
    return model


def save_tokenizer(folder: Path, *, is_marked: bool) -> dict[str, int]:
    """tokenizer.json; whole words, with a mark at both ends or, as SigLIP's, at the end."""
    ids = {word: place for place, word in enumerate(["<pad>", "<unk>", *WORDS.split(), "<s>", "</s>"])}
    made = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    made.pre_tokenizer = Whitespace()
    ends = [(mark, ids[mark]) for mark in ("<s>", "</s>")]
    made.post_processor = TemplateProcessing(
        single="<s> $A </s>" if is_marked else "$A </s>", special_tokens=ends if is_marked else ends[1:]
    )
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return ids


def rewrite(folder: Path, name: str = "config.json", **changes: Any) -> None:
    """Entries of a JSON file changed; None takes one away."""
    path = folder / name
    value = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: setting for key, setting in value.items() if setting is not None}))


def _seeded(kind: Any, config: Any) -> Any:
    """Weights of a fixed seed, large enough that pictures and texts are told apart."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        model = kind(config).eval()
        draws = torch.Generator().manual_seed(4)
        for name, weights in model.named_parameters():
            if weights.ndim > 1:
                scale = 0.5 if "token" in name or "position" in name else weights[0].numel() ** -0.5
                weights.data = torch.randn(weights.shape, generator=draws) * scale
    return model
