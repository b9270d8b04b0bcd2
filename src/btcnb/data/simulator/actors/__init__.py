"""The actors of the economy. Each has a constructor that registers entities, `settle` for its first coins, and `plan`
for a block."""
