"""``lookhops models`` by running it."""

import json


def test_the_layers_in_two_tables_and_a_page(lookhops, tmp_path):
    code, out, err = lookhops("models")
    assert code == 0, err
    assert max(map(len, out.splitlines()[:-1])) <= 80
    for name in ("licheb", "sgc", "diffpool", "https://arxiv.org/abs/1806.08804", "recorded"):
        assert name in out
    code, out, _ = lookhops("models", "--json")
    found = json.loads(out)
    assert {"convolutions", "poolings"} == found.keys()
    assert {"name", "kind", "paper", "parameters", "runs", "said"} == found["poolings"][0].keys()
    page = tmp_path / "models.md"
    code, out, _ = lookhops("models", "--page", page)
    assert out == f"written: {page}\n"
    assert page.read_text().startswith("# Models")
