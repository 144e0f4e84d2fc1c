"""Published architectures with the names of torchvision's and timm's weights, so that their files suffice.

The two libraries are not needed. The state dict of a network of either, saved as safetensors, loads into the
network of the same name here, which then says the same. [He et al. 2016; Xie et al. 2017; Zagoruyko and
Komodakis 2016; Simonyan and Zisserman 2015; Dosovitskiy et al. 2021]
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec

RESNETS = {
    "resnet18": (False, (2, 2, 2, 2), 1, 64),
    "resnet34": (False, (3, 4, 6, 3), 1, 64),
    "resnet50": (True, (3, 4, 6, 3), 1, 64),
    "resnet101": (True, (3, 4, 23, 3), 1, 64),
    "resnet152": (True, (3, 8, 36, 3), 1, 64),
    "resnext50_32x4d": (True, (3, 4, 6, 3), 32, 4),
    "wide_resnet50_2": (True, (3, 4, 6, 3), 1, 128),
}
"""Name: whether blocks have three convolutions, blocks per stage, groups, channels per group of 64."""
VGGS = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}
"""Name: convolutions per stage; with `_bn` behind it, each has a batch normalisation."""
TORCHVISION_VITS = {
    "vit_b_16": (16, 768, 12, 12),
    "vit_b_32": (32, 768, 12, 12),
    "vit_l_16": (16, 1024, 24, 16),
    "vit_l_32": (32, 1024, 24, 16),
}
TIMM_VITS = {
    "vit_tiny_patch16_224": (16, 192, 12, 3),
    "vit_small_patch16_224": (16, 384, 12, 6),
    "vit_small_patch32_224": (32, 384, 12, 6),
    "vit_base_patch16_224": (16, 768, 12, 12),
    "vit_base_patch32_224": (32, 768, 12, 12),
    "vit_large_patch16_224": (16, 1024, 24, 16),
    "deit_tiny_patch16_224": (16, 192, 12, 3),
    "deit_small_patch16_224": (16, 384, 12, 6),
    "deit_base_patch16_224": (16, 768, 12, 12),
}
"""Name: side of a patch, width, blocks, heads."""
NORM_EPSILON = 1e-6


def torchvision(name: str, classes: int = 1000, image_px: int = 224) -> nn.Module:
    """The network that torchvision has under this name: a ResNet, a VGG (also with `_bn`) or a ViT.

    Takes normalised pictures (N, 3, H, W), returns logits (N, classes); `image_px` is the side that a ViT was
    trained on. BadSpec lists the names.
    """
    plain = name.removesuffix("_bn")
    if name in RESNETS:
        return ResNet(*RESNETS[name], classes)
    if plain in VGGS:
        return Vgg(VGGS[plain], classes, is_normalised=name != plain)
    if name in TORCHVISION_VITS:
        return TorchvisionVit(*TORCHVISION_VITS[name], classes, image_px)
    raise _unknown("torchvision", name, [*RESNETS, *VGGS, *(f"{vgg}_bn" for vgg in VGGS), *TORCHVISION_VITS])


def timm(name: str, classes: int = 1000, image_px: int = 224) -> nn.Module:
    """As `torchvision`, for networks of timm: a ResNet or a ViT, by its name up to the dot."""
    if name in RESNETS:
        return ResNet(*RESNETS[name], classes)
    if name in TIMM_VITS:
        return TimmVit(*TIMM_VITS[name], classes, image_px)
    raise _unknown("timm", name, [*RESNETS, *TIMM_VITS])


def _unknown(library: str, name: str, known: list[str]) -> BadSpec:
    return BadSpec(
        f'builder_params name = "{name}": of {library}, {", ".join(known)} are built here; export another '
        "network as .pt2"
    )


def prefix_of(network: nn.Module) -> int | None:
    """The tokens before the cells, if the network says so."""
    prefix = getattr(network, "token_prefix", None)
    return prefix if isinstance(prefix, int) else None


class ResNet(nn.Module):
    """A residual network; the stride of a block with three convolutions is in the second."""

    def __init__(
        self, is_deep: bool, blocks: tuple[int, ...], groups: int, group_width: int, classes: int
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inside = 64
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            inner = (width * group_width // 64) * groups
            outside = 4 * width if is_deep else width
            made = []
            for place in range(count):
                stride = 2 if stage and not place else 1
                made.append(Residual(inside, inner, outside, stride, groups if is_deep else None))
                inside = outside
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        maps = self.maxpool(self.relu(self.bn1(self.conv1(pictures))))
        for stage in range(1, 5):
            maps = self.get_submodule(f"layer{stage}")(maps)
        logits: Tensor = self.fc(self.avgpool(maps).flatten(1))
        return logits


class Residual(nn.Module):
    """Two convolutions of 3 x 3, or with `groups` one between two of 1 x 1, and the way around them."""

    def __init__(self, inside: int, inner: int, outside: int, stride: int, groups: int | None) -> None:
        super().__init__()
        if groups is None:
            kernels = [(inside, inner, 3, stride, 1), (inner, outside, 3, 1, 1)]
        else:
            kernels = [(inside, inner, 1, 1, 1), (inner, inner, 3, stride, groups), (inner, outside, 1, 1, 1)]
        self.depth = len(kernels)
        for place, (before, behind, side, step, parts) in enumerate(kernels, 1):
            convolution = nn.Conv2d(before, behind, side, step, side // 2, groups=parts, bias=False)
            self.add_module(f"conv{place}", convolution)
            self.add_module(f"bn{place}", nn.BatchNorm2d(behind))
            self.add_module(f"relu{place}", nn.ReLU())
        self.downsample: nn.Module | None = None
        if stride > 1 or inside != outside:
            around = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample = nn.Sequential(around, nn.BatchNorm2d(outside))

    def forward(self, maps: Tensor) -> Tensor:
        added = maps if self.downsample is None else self.downsample(maps)
        for place in range(1, self.depth + 1):
            maps = self.get_submodule(f"bn{place}")(self.get_submodule(f"conv{place}")(maps))
            maps = self.get_submodule(f"relu{place}")(maps if place < self.depth else maps + added)
        return maps


class Vgg(nn.Module):
    """Stages of 3 x 3 convolutions, each followed by a pooling, and three linear layers."""

    def __init__(self, stages: tuple[int, ...], classes: int, *, is_normalised: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inside = 3
        for stage, count in enumerate(stages):
            outside = min(512, 64 * 2**stage)
            for _ in range(count):
                layers.append(nn.Conv2d(inside, outside, 3, padding=1))
                layers += [nn.BatchNorm2d(outside)] if is_normalised else []
                layers.append(nn.ReLU())
                inside = outside
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            *(nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Dropout()),
            *(nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout()),
            nn.Linear(4096, classes),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.avgpool(self.features(pictures)).flatten(1))
        return logits


class Attention(nn.Module):
    """Attention of tokens (N, T, C) among themselves, the same with and without gradients."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def attend(self, joined: Tensor) -> Tensor:
        """From queries, keys and values side by side (N, T, 3 C) to (N, T, C)."""
        count, length, width = joined.shape
        parts = joined.reshape(count, length, 3, self.heads, width // 3 // self.heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts.unbind(0)
        weights = (queries * queries.shape[-1] ** -0.5 @ keys.transpose(-2, -1)).softmax(dim=-1)
        mixed: Tensor = (weights @ values).transpose(1, 2).flatten(2)
        return mixed


class TimmAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.proj(self.attend(self.qkv(tokens)))
        return mixed


class TorchvisionAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads)
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        joined = nn.functional.linear(tokens, self.in_proj_weight, self.in_proj_bias)
        mixed: Tensor = self.out_proj(self.attend(joined))
        return mixed


class TimmBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, NORM_EPSILON)
        self.attn = TimmAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, NORM_EPSILON)
        self.mlp = _mixer("fc1", "fc2", width)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(self.norm1(tokens))
        mixed: Tensor = tokens + self.mlp(self.norm2(tokens))
        return mixed


class TorchvisionBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, NORM_EPSILON)
        self.self_attention = TorchvisionAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width, NORM_EPSILON)
        self.mlp = _mixer("0", "3", width)
        self.register_load_state_dict_pre_hook(_rename_mixer)  # type: ignore[no-untyped-call]

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.self_attention(self.ln_1(tokens))
        mixed: Tensor = tokens + self.mlp(self.ln_2(tokens))
        return mixed


def _rename_mixer(_block: nn.Module, state: dict[str, Tensor], prefix: str, *_others: object) -> None:
    """The published files name the two layers as torchvision did before 0.14."""
    for old, new in (("linear_1", "0"), ("linear_2", "3")):
        for kind in ("weight", "bias"):
            if (name := f"{prefix}mlp.{old}.{kind}") in state:
                state[f"{prefix}mlp.{new}.{kind}"] = state.pop(name)


def _mixer(first: str, second: str, width: int) -> nn.Module:
    """The two linear layers of a block, under the names that they have in the library."""
    return nn.Sequential(
        OrderedDict(
            [(first, nn.Linear(width, 4 * width)), ("gelu", nn.GELU()), (second, nn.Linear(4 * width, width))]
        )
    )


class TimmVit(nn.Module):
    """A class token, patches, blocks; the class token alone is read at the end."""

    token_prefix = 1

    def __init__(self, patch: int, width: int, depth: int, heads: int, classes: int, image_px: int) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (image_px // patch) ** 2, width))
        self.patch_embed = nn.Module()
        self.patch_embed.add_module("proj", nn.Conv2d(3, width, patch, stride=patch))
        self.blocks = nn.Sequential(*(TimmBlock(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, NORM_EPSILON)
        self.head = nn.Linear(width, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        cells = self.get_submodule("patch_embed.proj")(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(cells.shape[0], -1, -1), cells], 1) + self.pos_embed
        logits: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return logits


class TorchvisionVit(nn.Module):
    """As `TimmVit`, under torchvision's names."""

    token_prefix = 1

    def __init__(self, patch: int, width: int, depth: int, heads: int, classes: int, image_px: int) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(3, width, patch, stride=patch)
        self.encoder = TorchvisionEncoder(width, depth, heads, 1 + (image_px // patch) ** 2)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(width, classes)))

    def forward(self, pictures: Tensor) -> Tensor:
        cells = self.conv_proj(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(cells.shape[0], -1, -1), cells], 1)
        logits: Tensor = self.heads(self.encoder(tokens)[:, 0])
        return logits


class TorchvisionEncoder(nn.Module):
    def __init__(self, width: int, depth: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, tokens, width))
        blocks = ((f"encoder_layer_{place}", TorchvisionBlock(width, heads)) for place in range(depth))
        self.layers = nn.Sequential(OrderedDict(blocks))
        self.ln = nn.LayerNorm(width, NORM_EPSILON)

    def forward(self, tokens: Tensor) -> Tensor:
        normed: Tensor = self.ln(self.layers(tokens + self.pos_embedding))
        return normed
