"""What several people sign together: CoinJoins with their real denominations, round sizes, fees and order; channels."""
