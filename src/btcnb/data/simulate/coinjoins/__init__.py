"""CoinJoin protocols, each with its real denominations, round sizes, fees and order of inputs and outputs."""

PROTOCOLS = ("", "joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool", "whirlpool-tx0")
"""Names as `detect_coinjoins` gives them; a transaction stores the position."""

JOINMARKET, WASABI10, WASABI11, WASABI2, WHIRLPOOL, WHIRLPOOL_TX0 = range(1, 7)
