/**
 * The seam for a user interface: the turns of a session that can be gone back to, folded from the host's own events.
 * Which of them have a point is asked with `checkpoint_list`; nothing of ours is in the log to fold (deviation 2).
 */

import type { SessionEvent, SessionProjections } from './host.ts'

export interface TurnStrip {
  readonly turns: readonly { readonly turn: number; readonly end: number; readonly at: number }[]
}

const EMPTY: TurnStrip = { turns: [] }

/** A value that is what it is: the host checks shapes with a schema, and this one is made here. */
const schema = { parse: (value: unknown) => value, safeParse: (data: unknown) => ({ success: true, data }) }

type Unit = Parameters<SessionProjections['register']>[0]

export function checkpointsProjection(): Unit {
  return {
    key: 'checkpoints',
    schema,
    init: () => EMPTY,
    apply: (state, event) => next(state as TurnStrip, event),
    view: state => state,
    stateVersion: 1,
  }
}

/** The same object for every event that changes nothing (002-46). */
export function next(state: TurnStrip, event: SessionEvent): TurnStrip {
  const turn = event.type === 'turn/end' ? event.data?.['turn'] : undefined
  if (typeof turn !== 'number') return state
  return { turns: [...state.turns.filter(known => known.turn !== turn), { turn, end: event.seq, at: event.time }] }
}
