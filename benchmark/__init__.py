"""Fourth floor: execute_code against individual tool calls, and its speed against floors."""
