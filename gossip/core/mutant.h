/*
 * Deliberate bugs that the simulator must catch. Compiled in only where SKEIN_MUTANTS is defined
 * (tests/sim builds the core's sources a second time for it); elsewhere they cost nothing.
 */
#ifndef SKEIN_GOSSIP_CORE_MUTANT_H
#define SKEIN_GOSSIP_CORE_MUTANT_H

enum mutant {
    MUTANT_NONE = 0,
    MUTANT_EARLY_FRONTIER,    /* a cut transfer advances the frontier */
    MUTANT_SAME_INCARNATION,  /* an accused node repeats its incarnation */
    MUTANT_GENERATION_REUSED, /* a node that lost its memory goes on in its old generation */
    MUTANT_NO_TOMBSTONE,      /* a deletion removes the row */
    MUTANT_COUNT,
};

#ifdef SKEIN_MUTANTS
extern enum mutant mutant_active;
#define MUTANT(which) (mutant_active == (which))
#else
#define MUTANT(which) false
#endif

#endif
