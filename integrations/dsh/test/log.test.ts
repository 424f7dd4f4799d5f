import assert from 'node:assert/strict'
import { test } from 'node:test'

import { closedTurns, isRoot, lastTurnEnd, openStep, openTurn, turnEnd } from '../src/log.ts'
import { next } from '../src/projection.ts'
import { FakeSession } from './support.ts'

test('TB10 TB11 TB13 the cut is the last end of a turn at or before; before the first there is none', () => {
  const log = new FakeSession()
  const first = log.turn(1)
  const second = log.turn(2)
  assert.equal(lastTurnEnd(log.events, first.seq), first.seq)
  assert.equal(lastTurnEnd(log.events, second.seq - 1), first.seq)
  assert.equal(lastTurnEnd(log.events), second.seq)
  assert.equal(lastTurnEnd(log.events, first.seq - 1), undefined)
  assert.equal(lastTurnEnd([]), undefined)
})

test('TB14 TH13 the open turn, the open step, and none between turns', () => {
  const log = new FakeSession()
  assert.deepEqual([openTurn(log.events), openStep(log.events)], [undefined, undefined])
  log.append('turn/start', { turn: 3 })
  assert.deepEqual([openTurn(log.events), openStep(log.events)], [3, undefined])
  log.append('step/start', { turn: 3, step: 1 })
  log.append('tool/call', { turn: 9 })
  assert.deepEqual(openStep(log.events), { turn: 3, step: 1 })
  log.append('step/end', { turn: 3, step: 1 })
  assert.deepEqual([openTurn(log.events), openStep(log.events)], [3, undefined])
  log.append('turn/end', { turn: 3, reason: { kind: 'completed' } })
  assert.equal(openTurn(log.events), undefined)
})

test('TB20 turn numbers on other events mean nothing; a number that came twice means its last end', () => {
  const log = new FakeSession()
  log.append('command/run', { turn: 8 })
  log.turn(1)
  const again = log.turn(1, 1, 'interrupted')
  assert.deepEqual(closedTurns(log.events).map(({ turn, reason }) => [turn, reason]), [[1, 'completed'], [1, 'interrupted']])
  assert.equal(turnEnd(log.events, 1)?.end, again.seq)
  assert.equal(turnEnd(log.events, 8), undefined)
})

test('c003_06 roots are sessions that nobody delegated', () => {
  assert.deepEqual([{}, { delegationDepth: 0 }, { origin: 'subagent' }, { delegationDepth: 1 }].map(isRoot), [true, true, false, false])
})

test('TL32 TL33 the projection takes the ends of turns, and is the same object for everything else', () => {
  const log = new FakeSession()
  const end = log.turn(1)
  const state = next({ turns: [] }, end)
  assert.deepEqual(state, { turns: [{ turn: 1, end: end.seq, at: end.time }] })
  assert.equal(next(state, log.append('checkpoint/snapshot', { id: 'x' })), state)
  assert.equal(next(state, log.append('turn/end', { turn: 1 })).turns.length, 1)
})
