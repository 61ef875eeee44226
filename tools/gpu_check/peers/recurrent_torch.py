"""Networks of models/ with LSTM layers, in PyTorch."""

import torch
from torch import nn


class Recurrent(nn.LSTM):
    """Layers with one bias each: the second bias of torch.nn stays zero. In training each row starts with the final
    state of the same row of the previous batch."""

    def __init__(self, width, layers):
        super().__init__(width, width, layers, batch_first=True)
        for layer in range(layers):
            getattr(self, f"bias_hh_l{layer}").data.zero_()
            getattr(self, f"bias_hh_l{layer}").requires_grad_(False)
        self.state = None

    def forward(self, x):
        if not self.training:
            return super().forward(x)[0]
        before, rows = self.state, x.shape[0]
        if is_short := before is not None and rows < before[0].shape[1]:
            before = tuple(part[:, :rows].contiguous() for part in before)
        y, state = super().forward(x, before)
        if is_short:  # rows outside the batch keep their state
            state = tuple(torch.cat((new, old[:, rows:]), 1) for new, old in zip(state, self.state))
        self.state = tuple(part.detach() for part in state)
        return y


class LSTM(nn.Module):
    def __init__(self, words=10000, width=256):
        super().__init__()
        self.embedding, self.lstm, self.fc = nn.Embedding(words, width), Recurrent(width, 2), nn.Linear(width, words)

    def forward(self, x):
        return self.fc(self.lstm(self.embedding(x)))


class LanguageModel(nn.Module):
    def __init__(self, words=10000, width=650, dropout=0.5):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding, self.lstm1, self.lstm2, self.fc = nn.Embedding(words, width), Recurrent(width, 1), Recurrent(width, 1), nn.Linear(width, words)

    def forward(self, x):
        x = self.lstm1(self.dropout(self.embedding(x)))
        return self.fc(self.dropout(self.lstm2(self.dropout(x))))
