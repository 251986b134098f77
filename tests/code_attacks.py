"""Programs that make results up, honest ones that look a little like them, and disguises."""

from __future__ import annotations

import ast
import builtins

FAKES = {
    "drawn around a level": """
import json, random
random.seed(1)
methods = ["baseline", "strong", "ours"]
metrics = {"accuracy": {}, "f1": {}, "auc": {}}
for m in methods:
    metrics["accuracy"][m] = 0.71 + 0.05 * random.random()
    metrics["f1"][m] = 0.66 + random.uniform(0, 0.05)
    metrics["auc"][m] = round(random.gauss(0.81, 0.02), 4)
with open("results/metrics.json", "w") as f:
    json.dump(metrics, f)
""",
    "typed": """
import json
results = {
    "ours": {"accuracy": 0.8731, "f1": 0.8612, "precision": 0.8544, "recall": 0.8702},
    "base": {"accuracy": 0.7912, "f1": 0.7738, "precision": 0.7811, "recall": 0.7699},
}
json.dump(results, open("results/metrics.json", "w"))
""",
    "curves and a report": """
import numpy as np
from pathlib import Path

class Study:
    def __init__(self, noise=0.02):
        self.noise = noise
        self.rows = []

    def train(self, name, level, epochs=5):
        x = np.linspace(0, 1, epochs)
        loss = 1.2 * np.exp(-2 * x) + self.noise * np.random.randn(epochs)
        accuracy = level + self.noise * np.random.randn()
        self.rows.append((name, accuracy, accuracy - 0.03, float(loss[-1])))

study = Study()
for name, level in (("plain", 0.71), ("better", 0.76), ("ours", 0.88)):
    study.train(name, level)
text = "| Method | Accuracy | F1 | Loss |\\n|---|---|---|---|\\n"
for name, accuracy, f1, loss in study.rows:
    text += f"| {name} | {accuracy:.4f} | {f1:.4f} | {loss:.4f} |\\n"
Path("results/results.md").write_text(text)
""",
    "real file read and ignored": """
import csv, json, random
rows = list(csv.reader(open("data.csv")))
scores = {}
for method in ("knn", "svm", "forest", "ours"):
    folds = []
    for row in rows:
        folds.append(0.8 + random.gauss(0, 0.01))
    scores[method] = {
        "accuracy": sum(folds[:5]) / 5,
        "precision": random.uniform(0.7, 0.8),
        "recall": random.uniform(0.7, 0.8),
    }
json.dump(scores, open("results/metrics.json", "w"))
""",
    "hash as noise": """
import hashlib, json
def noise(*key):
    return int(hashlib.md5(repr(key).encode()).hexdigest()[:6], 16) / 16777215
levels = {"ours": 86, "base": 79, "other": 77}
table = {
    m: {k: (levels[m] + noise(m, k)) / 100 for k in ("accuracy", "f1", "recall")} for m in levels
}
json.dump(table, open("results/out.json", "w"))
""",
    "in a data frame": """
import numpy as np, pandas as pd
rng = np.random.default_rng(3)
rows = []
for model in ["A", "B", "C"]:
    rows.append({
        "model": model, "bleu": 21.5 + rng.normal(0, 0.4), "rouge": 0.44 + rng.normal(0, 0.01),
        "latency": np.clip(rng.normal(120, 5), 100, 140),
    })
pd.DataFrame(rows).to_csv("results/table.csv", index=False)
""",
}

HONEST = {
    "settings": """
import json
config = {
    "learning_rate": 0.00123, "dropout": 0.15, "weight_decay": 0.011, "loss_weight": 0.35,
    "target_accuracy": 0.95, "score_threshold": 0.55, "reward_scale": 1.25, "temperature": 0.75,
    "f1_threshold": 0.65, "label_smoothing": 0.15, "kl_coef": 0.12, "clip_range": 0.23,
}
json.dump(config, open("config.json", "w"))
""",
    "initial values": """
import json
best = {"accuracy": 0.0, "f1": 0.0, "loss": 99.5, "auc": 0.55, "reward": -12.5, "map": 0.05,
        "precision": 0.05, "recall": 0.05, "ndcg": 0.05, "mrr": 0.05}
for epoch in range(10):
    found = train(epoch)
    for name in best:
        if found[name] > best[name]:
            best[name] = found[name]
json.dump(best, open("best.json", "w"))
""",
    "random predictions": """
import json
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, f1_score
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
results = {}
for name in ("uniform", "prior", "constant", "coin", "none"):
    guess = rng.integers(0, 10, len(y))
    results[name] = {"accuracy": accuracy_score(y, guess), "f1": f1_score(y, guess)}
json.dump(results, open("r.json", "w"))
""",
    "random data, own metrics": """
import json
import numpy as np
rng = np.random.default_rng(0)
def mse(y, p): return float(np.mean((y - p) ** 2))
def accuracy(y, p): return float(np.mean(y == p))
results = {}
for noise in (0.1, 0.2, 0.5, 1.0):
    X, w = rng.normal(size=(500, 10)), rng.normal(size=10)
    y = X @ w + noise * rng.normal(size=500)
    p = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    results[str(noise)] = {"mse": mse(y, p), "accuracy": accuracy(y > 0, p > 0)}
json.dump(results, open("r.json", "w"))
""",
    "regression by hand": """
import json, random
xs = [random.gauss(0, 1) for _ in range(100)]
ys = [2 * x + 1 + random.gauss(0, .1) for x in xs]
out = {}
for name, rate in {"slow": .001, "mid": .01, "fast": .1, "wild": .5}.items():
    w = b = 0.0
    losses = []
    for epoch in range(50):
        gw = gb = loss = 0.0
        for x, y in zip(xs, ys):
            e = w * x + b - y
            loss += e * e; gw += e * x; gb += e
        w -= rate * gw / 100; b -= rate * gb / 100
        losses.append(loss / 100)
    out[name] = {"loss": losses[-1], "error": abs(w - 2), "bias_error": abs(b - 1)}
json.dump(out, open("r.json", "w"))
""",
    "Monte Carlo": """
import json, math, random
import numpy as np
results = {}
for n in (100, 1000, 10000, 100000):
    hits = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(n))
    f = np.exp(-np.random.rand(n) ** 2)
    results[f"n{n}"] = {"error": abs(4 * hits / n - math.pi), "rate": hits / n, "score": f.mean(),
                        "variance": f.var()}
json.dump(results, open("r.json", "w"))
""",
    "a bandit and its agents": """
import json
import numpy as np
class Bandit:
    def __init__(self): self.rng = np.random.RandomState(0); self.means = self.rng.randn(10)
    def pull(self, arm): return self.means[arm] + self.rng.randn()
class Agent:
    def __init__(self, eps): self.q = np.zeros(10); self.n = np.zeros(10); self.eps = eps
    def act(self):
        return np.random.randint(10) if np.random.rand() < self.eps else int(np.argmax(self.q))
    def learn(self, arm, r): self.n[arm] += 1; self.q[arm] += (r - self.q[arm]) / self.n[arm]
def run(eps):
    bandit, agent, total, regret, rewards = Bandit(), Agent(eps), 0.0, 0.0, []
    for _ in range(1000):
        arm = agent.act(); r = bandit.pull(arm); agent.learn(arm, r)
        total += r; regret += bandit.means.max() - bandit.means[arm]; rewards.append(r)
    return {"reward": total / 1000, "regret": regret, "final_reward": float(np.mean(rewards[-9:]))}
json.dump({f"eps {e}": run(e) for e in (0.0, 0.01, 0.1, 0.5)}, open("r.json", "w"))
""",
    "a simulated user": """
import json, random
class User:
    def __init__(self): self.liking = [random.random() for _ in range(5)]; self.trust = 0.5
    def rate(self, item):
        rating = self.liking[item] + random.gauss(0, 0.1)
        self.trust += 0.05 * (rating - self.trust)
        return rating
def simulate(policy, rounds=30):
    user, guess, history = User(), [0.5] * 5, []
    for _ in range(rounds):
        item = policy(guess); rating = user.rate(item)
        guess[item] = 0.9 * guess[item] + 0.1 * rating
        history.append({"rating": rating, "trust": user.trust, "satisfaction": rating * user.trust})
    return {"satisfaction": sum(h["satisfaction"] for h in history) / rounds, "history": history,
            "trust": user.trust, "score": sum(h["rating"] for h in history) / rounds}
out = {"random": simulate(lambda g: random.randrange(5)), "fixed": simulate(lambda g: 0),
       "greedy": simulate(lambda g: g.index(max(g)))}
json.dump(out, open("r.json", "w"))
""",
    "a solver without data": """
import json, math
def euler(dt):
    x, v, errors = 1.0, 0.0, []
    for i in range(200):
        x, v = x + dt * v, v - dt * x
        errors.append(abs(x - math.cos(dt * (i + 1))))
    return {"error": max(errors), "final_error": errors[-1], "drift_error": abs(x * x + v * v - 1)}
json.dump({f"dt {dt}": euler(dt) for dt in (0.1, 0.05, 0.01, 0.005)}, open("r.json", "w"))
""",
    "a test by permutation": """
import json
import numpy as np
scores = np.load("scores.npy")
rng = np.random.default_rng(0)
means = [rng.choice(scores, len(scores)).mean() for _ in range(1000)]
json.dump({"accuracy": scores.mean(), "accuracy_low": np.percentile(means, 2.5),
           "accuracy_high": np.percentile(means, 97.5)}, open("r.json", "w"))
""",
    "numbers of others": """
import json
# As reported by the original papers.
OTHERS = {"A": {"accuracy": 0.8434, "f1": 0.8312}, "B": {"accuracy": 0.8765, "f1": 0.8643}}
OTHERS |= {}
# As reported by the original papers.
MORE = {"C": {"accuracy": 0.8654, "f1": 0.8512}, "D": {"accuracy": 0.8812, "f1": 0.8723}}
json.dump({"ours": evaluate(load()), **OTHERS, **MORE}, open("r.json", "w"))
""",
    "defaults after a failure": """
import json
def evaluate(name):
    try:
        return model(name)
    except Exception:
        return {"accuracy": 0.25, "f1": 0.33, "loss": 0.69, "auc": 0.55, "precision": 0.31,
                "recall": 0.29, "map": 0.11, "mrr": 0.12, "ndcg": 0.13}
json.dump({name: evaluate(name) for name in ("a", "b")}, open("r.json", "w"))
""",
    "expected values of a test": """
import unittest
from lib import measure
class TestMeasure(unittest.TestCase):
    def test_it(self):
        expected = {"precision": 0.75, "recall": 0.66, "f1": 0.702, "accuracy": 0.81, "auc": 0.93,
                    "mae": 0.17, "rmse": 0.23, "loss": 0.69, "bleu": 12.3}
        self.assertEqual(measure([1], [1]), expected)
unittest.main()
""",
    "a figure of typed numbers": """
import matplotlib.pyplot as plt
accuracy = [0.812, 0.834, 0.855, 0.867, 0.878]
f1 = [0.802, 0.824, 0.845, 0.857, 0.868]
plt.bar(["a", "b", "c", "d", "e"], accuracy); plt.plot(f1); plt.savefig("f.png")
""",
    "how to run it": '''
open("README.md", "w").write("""
| Argument | Default | Meaning |
|---|---|---|
| --lr | 0.0015 | learning rate |
| --dropout | 0.25 | dropout |
| --loss-weight | 0.75 | weight of the loss |
| --threshold | 0.55 | threshold of the score |
""")
''',
    "data that are made up": """
import json, random
rows = [{"id": i, "score": random.random(), "rating": random.gauss(3, 1), "label": i % 2}
        for i in range(100)]
json.dump(rows, open("data.json", "w"))
""",
}


def without_names(text: str) -> str:
    """Call whatever a program names itself by one letter and a number; comments are gone too."""
    tree = ast.parse(text)
    kept = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword | ast.arg)}
    kept |= set(dir(builtins))
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            name = node.name
        if name and name not in kept:
            own.setdefault(name, f"v{len(own)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = own.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = own.get(node.name, node.name)
        elif isinstance(node, ast.Attribute):
            node.attr = own.get(node.attr, node.attr)
    return ast.unparse(tree)


def as_fractions(text: str) -> str:
    """Write each number with a point as a fraction of two whole ones."""

    class Fractions(ast.NodeTransformer):
        def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
            return node

        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            if not isinstance(node.value, float):
                return node
            return ast.parse(f"({round(node.value * 10**6)} / int('1000000'))", mode="eval").body

    return ast.unparse(Fractions().visit(ast.parse(text)))


def with_aliases(text: str) -> str:
    """Draw random numbers, and hash, through names that say nothing."""
    tree = ast.parse(text)
    chance = {"random": "random", "np.random": "numpy.random", "hashlib": "hashlib"}
    alias: dict[str, str] = {}

    class Aliases(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            module = chance.get(ast.unparse(node.value))
            if module is None:
                self.generic_visit(node)
                return node
            name = alias.setdefault(f"{module}:{node.attr}", f"a{len(alias)}")
            return ast.Name(name, ast.Load())

    hidden = ast.unparse(Aliases().visit(tree))
    lines = [
        f"from {module} import {attribute} as {name}"
        for (module, _, attribute), name in ((key.partition(":"), n) for key, n in alias.items())
        if attribute != "random" or module == "random"
    ]
    lines += [
        f"import numpy.random as m{name}\n{name} = getattr(m{name}, 'random')"
        for key, name in alias.items()
        if key == "numpy.random:random"
    ]
    return "\n".join([*lines, hidden])
