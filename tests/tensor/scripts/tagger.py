"""A GRU that tags the words of sentences, as PyTorch's users write it; `main` returns the
losses."""

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader


def collate(batch):
    words, tags = zip(*batch, strict=True)
    lengths = torch.tensor([len(w) for w in words])
    x = pad_sequence([torch.tensor(w) for w in words], batch_first=True, padding_value=0)
    y = pad_sequence([torch.tensor(t) for t in tags], batch_first=True, padding_value=-100)
    return x, y, lengths


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def forward(self, emissions, tags, mask):
        return (self._partition(emissions, mask) - self._score(emissions, tags, mask)).mean()

    def _score(self, e, tags, mask):
        tags = tags.masked_fill(~mask, 0)
        first = tags[:, 0]
        score = self.start[first] + e[:, 0].gather(1, first.unsqueeze(1)).squeeze(1)
        for i in range(1, e.size(1)):
            step = self.transitions[tags[:, i - 1], tags[:, i]]
            step = step + e[:, i].gather(1, tags[:, i : i + 1]).squeeze(1)
            score = score + step * mask[:, i].float()
        return score

    def _partition(self, e, mask):
        alpha = self.start + e[:, 0]
        for i in range(1, e.shape[1]):
            scores = alpha.unsqueeze(2) + self.transitions + e[:, i].unsqueeze(1)
            alpha = torch.where(mask[:, i].unsqueeze(1), torch.logsumexp(scores, dim=1), alpha)
        return torch.logsumexp(alpha, 1)

    @torch.no_grad()
    def decode(self, e, lengths):
        paths = []
        for row, n in zip(e, lengths.tolist(), strict=True):
            score, back = self.start + row[0], []
            for i in range(1, n):
                best, where = (score[:, None] + self.transitions).max(dim=0)
                score = best + row[i]
                back.append(where)
            path = [int(score.argmax())]
            for where in reversed(back):
                path.append(where[path[-1]].item())
            paths.append(path[::-1])
        return paths


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=12, hidden=10):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.drop = nn.Dropout(p=0.0)
        self.out = nn.Linear(2 * hidden, tags)
        self.crf = CRF(tags)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(
            self.embed(x), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return self.out(self.drop(self.norm(out))), h


def main(sentences, vocab, tags, weights):
    torch.manual_seed(0)
    loader = DataLoader(sentences, batch_size=6, collate_fn=collate)
    model = Tagger(vocab, tags)
    model.load_state_dict({k: torch.from_numpy(v) for k, v in weights(model).items()})
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    loss_fn = nn.CrossEntropyLoss(ignore_index=-100, reduction="sum")
    seen = []
    handle = model.norm.register_full_backward_hook(
        lambda m, grad_in, grad_out: seen.append(grad_out[0].norm().item())
    )
    losses = []
    for epoch in range(2):
        for x, y, lengths in loader:
            mask = y.ne(-100)
            emissions, h = model(x, lengths)
            token = loss_fn(emissions.view(-1, tags), y.view(-1)) / mask.sum()
            loss = token + 0.3 * model.crf(emissions, y, mask) + 1e-3 * h.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            total = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            scheduler.step()
            losses += [loss.item(), float(total)]
    handle.remove()
    model.eval()
    with torch.inference_mode():
        for x, y, lengths in loader:
            emissions, _ = model(x, lengths)
            right = (emissions.argmax(-1) == y)[y != -100].float().mean()
            paths = model.crf.decode(emissions, lengths)
            losses += [right.item(), float(sum(map(sum, paths)))]
    return losses + seen
