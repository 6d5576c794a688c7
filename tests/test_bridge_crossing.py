"""What crosses between loops: in order, one wake-up a turn, never lost with who was to wake."""

import asyncio

from limbeck.bridge.crossing import Post, post_to


class Counted(asyncio.SelectorEventLoop):
    """Counts how often another thread woke it."""

    woken = 0

    def call_soon_threadsafe(self, *args, **kwargs):
        self.woken += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def test_what_a_turn_posts_wakes_the_other_loop_once_behind_it_and_stays_in_order() -> None:
    there, heard = Counted(), []

    async def post() -> None:
        for number in range(100):
            post_to(there).send(heard.append, number)
        assert there.woken == 0
        await asyncio.sleep(0)
        assert there.woken == 1

    asyncio.run(post())
    there.run_until_complete(asyncio.sleep(0))
    there.close()
    assert heard == list(range(100))


def test_a_thread_does_not_rely_on_a_loop_that_never_came_to_the_end_of_its_turn() -> None:
    there, heard = asyncio.new_event_loop(), []
    post, here = Post(there), asyncio.new_event_loop()

    async def stop_at_once() -> None:
        here.stop()
        post.send(heard.append, "from the loop")

    here.create_task(stop_at_once())
    here.run_forever()
    here.close()
    post.send(heard.append, "from a thread")
    there.run_until_complete(asyncio.sleep(0))
    there.close()
    assert heard == ["from the loop", "from a thread"]
