"""The smallest example: one tool, one script, only the answer comes back."""

from limbeck import Executor, Toolset

weather = Toolset("weather", "Weather by city.")


@weather.tool(effect="read")
def temperature(city: str) -> float:
    """Tell the temperature of a city, in degrees Celsius."""
    return {"Oslo": 4.5, "Lisbon": 19.0, "Cairo": 31.2}[city]


SCRIPT = """
from tools import weather
cities = ["Oslo", "Lisbon", "Cairo"]
warmest = max(cities, key=weather.temperature)
print(f"{warmest} is the warmest")
"""

if __name__ == "__main__":
    with Executor([weather]) as executor:
        print(executor.execute_code(SCRIPT).for_model())
