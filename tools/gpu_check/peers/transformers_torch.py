"""Networks of models/ with equal blocks of products, in PyTorch: transformers and a mixer."""

import torch
import torch.nn.functional as F
from torch import nn


def by_products(q, k, v, is_causal):
    """Attention by its definition."""
    scores = q @ k.transpose(2, 3) / 8
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).triu(1), -torch.inf)
    return scores.softmax(3) @ v


def by_op(q, k, v, is_causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


FASTEST = by_op if hasattr(F, "scaled_dot_product_attention") else by_products  # old versions of PyTorch lack the op


def attended(qkv, is_causal=False, attention=FASTEST):
    """In heads of 64."""
    heads = (x.reshape(*x.shape[:2], -1, 64).transpose(1, 2) for x in qkv.chunk(3, 2))
    return attention(*heads, is_causal).transpose(1, 2).flatten(2)


class GPT2Block(nn.Module):
    def __init__(self, width, dropout, attention):
        super().__init__()
        self.dropout, self.attention = dropout, attention
        self.ln_1, self.ln_2 = nn.LayerNorm(width, 1e-5), nn.LayerNorm(width, 1e-5)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.c_proj(attended(self.c_attn(self.ln_1(x)), True, self.attention))
        x = x + F.dropout(y, self.dropout, self.training)
        y = self.c_mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))
        return x + F.dropout(y, self.dropout, self.training)


class GPT2(nn.Module):
    def __init__(self, words=50257, width=768, layers=12, dropout=0.1, attention=FASTEST):
        super().__init__()
        self.dropout = dropout
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.h, self.ln_f = nn.Sequential(*(GPT2Block(width, dropout, attention) for _ in range(layers))), nn.LayerNorm(width, 1e-5)

    def forward(self, x):
        x = F.dropout(self.wte(x) + self.wpe.weight[: x.shape[1]], self.dropout, self.training)
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


class Block(nn.Module):
    """One layer of a transformer, with norms before or after the residual addition."""

    def __init__(self, width, eps, before):
        super().__init__()
        self.before = before
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        return self.out(attended(self.qkv(x)))

    def think(self, x):
        return self.fc2(F.gelu(self.fc1(x)))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.norm1(x))
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.think(x))


class BERT(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(30522, width), nn.Embedding(512, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.Sequential(*(Block(width, 1e-12, False) for _ in range(12)))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x):
        x = self.norm(self.word(x) + self.position.weight[: x.shape[1]] + self.kind.weight[0])
        return self.classifier(torch.tanh(self.pooler(self.layers(x)[:, 0])))


class ViTS16(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.first, self.position = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 197, width))
        self.layers = nn.Sequential(*(Block(width, 1e-6, True) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


class Mlp(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(features, hidden), nn.Linear(hidden, features)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Mixer(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norm1, self.mlp_tokens = nn.LayerNorm(width, 1e-6), Mlp(patches, 256)
        self.norm2, self.mlp_channels = nn.LayerNorm(width, 1e-6), Mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, 16, 16)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class MlpMixer(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.stem = Patches(width)
        self.blocks = nn.Sequential(*(Mixer(14 * 14, width) for _ in range(8)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x))).mean(1))
