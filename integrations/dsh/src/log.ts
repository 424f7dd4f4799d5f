/** Reading a session's events: turns, steps and the places where it may be cut. Pure. */

import type { SessionEvent } from './host.ts'

/** A turn that has ended, and the position of its end. */
export interface ClosedTurn {
  readonly turn: number
  readonly end: number
  readonly at: number
  readonly reason: string
}

const numberOf = (event: SessionEvent, key: string): number | undefined => {
  const value = event.data?.[key]
  return typeof value === 'number' ? value : undefined
}

/** Why a turn ended: the kind of its reason. */
export function reasonOf(event: SessionEvent): string {
  const reason = event.data?.['reason']
  const kind = typeof reason === 'object' && reason !== null ? (reason as { kind?: unknown }).kind : undefined
  return typeof kind === 'string' ? kind : 'unknown'
}

/** Every turn that has ended, in the order of the log. */
export function closedTurns(events: readonly SessionEvent[]): ClosedTurn[] {
  const turns: ClosedTurn[] = []
  for (const event of events) {
    const turn = event.type === 'turn/end' ? numberOf(event, 'turn') : undefined
    if (turn !== undefined) turns.push({ turn, end: event.seq, at: event.time, reason: reasonOf(event) })
  }
  return turns
}

/** The turn that is open at the end of the log (TH13), or nothing between turns. */
export function openTurn(events: readonly SessionEvent[]): number | undefined {
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at]
    if (event?.type === 'turn/end') return undefined
    if (event?.type === 'turn/start') return numberOf(event, 'turn')
  }
  return undefined
}

/** Turn and step that are open at the end of the log: where a mutation belongs. */
export function openStep(events: readonly SessionEvent[]): { turn: number; step: number } | undefined {
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at]
    if (event === undefined || event.type === 'turn/end' || event.type === 'turn/start' || event.type === 'step/end') return undefined
    if (event.type !== 'step/start') continue
    const turn = numberOf(event, 'turn')
    const step = numberOf(event, 'step')
    return turn === undefined || step === undefined ? undefined : { turn, step }
  }
  return undefined
}

/** The last end of a turn at or before a position: where the session may be cut (TB10, TB11, TB13). */
export function lastTurnEnd(events: readonly SessionEvent[], upTo = Number.MAX_SAFE_INTEGER): number | undefined {
  for (let at = Math.min(events.length - 1, upTo); at >= 0; at--) {
    if (events[at]?.type === 'turn/end') return events[at]?.seq
  }
  return undefined
}

/** The end of one turn. A number that was used twice, after a repair, means its last end. */
export function turnEnd(events: readonly SessionEvent[], turn: number): ClosedTurn | undefined {
  return closedTurns(events).findLast(closed => closed.turn === turn)
}

/** True for sessions of people: 003 keeps automatic lines for these only (003-06). */
export function isRoot(header: { readonly origin?: string; readonly delegationDepth?: number }): boolean {
  return header.origin === undefined && (header.delegationDepth ?? 0) === 0
}
