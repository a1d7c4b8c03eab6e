/*
 * A ring of bits; see replay.h.
 */
#include "gossip/net/replay.h"

#include <string.h>

static uint64_t *word_of(struct replay *replay, uint64_t counter)
{
    return &replay->seen[counter % REPLAY_WINDOW / 64];
}

static uint64_t bit_of(uint64_t counter)
{
    return (uint64_t)1 << (counter % 64);
}

void replay_begin(struct replay *replay, uint64_t counter)
{
    replay->highest = counter;
    memset(replay->seen, 0xff, sizeof(replay->seen));
}

bool replay_accept(struct replay *replay, uint64_t counter)
{
    if (counter > replay->highest) {
        if (counter - replay->highest >= REPLAY_WINDOW) {
            memset(replay->seen, 0, sizeof(replay->seen));
        } else {
            for (uint64_t at = replay->highest + 1; at < counter; at++) {
                *word_of(replay, at) &= ~bit_of(at);
            }
        }
        replay->highest = counter;
        *word_of(replay, counter) |= bit_of(counter);
        return true;
    }
    if (replay->highest - counter >= REPLAY_WINDOW ||
        (*word_of(replay, counter) & bit_of(counter)) != 0) {
        return false;
    }
    *word_of(replay, counter) |= bit_of(counter);
    return true;
}
