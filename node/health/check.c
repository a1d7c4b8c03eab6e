/*
 * The vote of one observer: rise and fall, pace and phase. See check.h for the table.
 */
#include "node/health/check.h"

static bool turn(struct check *check, enum check_vote vote)
{
    check->vote = vote;
    check->streak = 0;
    return true;
}

bool check_observe(struct check *check, const struct check_pace *pace, bool good)
{
    if (check->vote == CHECK_UNKNOWN) {
        return turn(check, good ? CHECK_UP : CHECK_DOWN);
    }
    if (good == (check->vote == CHECK_UP)) {
        check->streak = 0;
        return false;
    }
    check->streak++;
    if (check->streak < check_needed(check, pace)) {
        return false;
    }
    return turn(check, good ? CHECK_UP : CHECK_DOWN);
}

uint32_t check_needed(const struct check *check, const struct check_pace *pace)
{
    if (check->vote == CHECK_UNKNOWN) {
        return 1;
    }
    return check->vote == CHECK_UP ? pace->fall : pace->rise;
}

uint64_t check_next(struct check *check, const struct check_pace *pace, struct rng *rng,
                    uint64_t started_ms, uint64_t ended_ms)
{
    bool calm = check->vote == CHECK_UP && check->streak == 0;
    uint64_t interval = calm ? pace->interval_ms : pace->interval_down_ms;
    uint64_t wait;
    if (calm && !check->spread) {
        check->spread = true;
        wait = interval / 10 + rng_below(rng, interval - interval / 10 + 1);
    } else {
        uint64_t jitter = interval / 10;
        wait = interval - jitter + rng_below(rng, 2 * jitter + 1);
    }
    return MAX(started_ms + wait, ended_ms + 1);
}
