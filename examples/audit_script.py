"""The agent's script: which products have fewer than five variants in stock?"""

from tools import retail

short = []
for name, product_id in retail.list_all_product_types().items():
    variants = retail.get_product_details(product_id)["variants"].values()
    in_stock = [variant for variant in variants if variant["available"]]
    if len(in_stock) < 5:
        prices = [variant["price"] for variant in in_stock]
        span = f"{min(prices):.2f}-{max(prices):.2f}" if prices else "-"
        short.append((len(in_stock), len(variants), name, span))

print(f"{'product':22} {'in stock':>8} {'of':>3}  price")
for in_stock, total, name, span in sorted(short):
    print(f"{name:22} {in_stock:8} {total:3}  {span}")
