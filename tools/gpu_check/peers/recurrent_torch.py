"""Networks of models/ with LSTM layers, in PyTorch."""

from torch import nn


class Recurrent(nn.Module):
    """Layers of an LSTM with one bias each: the second of torch.nn stays zero. Each batch begins with what the one before left."""

    def __init__(self, width, layers):
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        for layer in range(layers):
            getattr(self.lstm, f"bias_hh_l{layer}").data.zero_()
            getattr(self.lstm, f"bias_hh_l{layer}").requires_grad_(False)
        self.state = None

    def forward(self, x):
        y, state = self.lstm(x, self.state)
        if self.training:
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
