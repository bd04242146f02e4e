"""What a model is told: how features of graphs become the columns that it was trained on."""
