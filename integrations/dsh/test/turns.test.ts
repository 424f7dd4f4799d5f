import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Captures } from '../src/capture.ts'
import { Turns, turnTools } from '../src/turns.ts'
import { agentOf, config, FakeContext, FakeEngine, FakeSession, outcome, point } from './support.ts'

function stage(raw: Record<string, unknown> = {}, services: Record<string, unknown> = {}) {
  const session = new FakeSession()
  const ctx = new FakeContext(services, session)
  const engine = new FakeEngine()
  const parts = { ctx: ctx.as, config: config(raw), engine }
  const captures = new Captures({ ...parts, log: ctx.logger, turnClosed: async () => undefined })
  const turns = new Turns({ ...parts, captures })
  const agent = agentOf(session)
  const signal = new AbortController().signal
  const [list, restore] = turnTools(turns)
  const exec = { agent, callId: 'c', name: 'x', arguments: {}, signal }
  return { session, ctx, engine, turns, agent, list: () => list?.execute({}, exec), restore: (args: unknown) => restore?.execute(args, exec), tools: [list, restore], signal }
}

/** Two turns with a point around each, and a record of one that the log does not have. */
function played(on: ReturnType<typeof stage>): { first: number; second: number } {
  const first = on.session.turn(1).seq
  const second = on.session.turn(2).seq
  on.engine.turns = [
    { turn: 1, changedCount: 3, capturedAt: 11 },
    { turn: 2, changedCount: 0, capturedAt: 22 },
    { turn: 9, changedCount: 1, capturedAt: 99 },
  ]
  return { first, second }
}

test('c000_12 the list: exactly these members; a turn that changed nothing is there with 0', async () => {
  const on = stage()
  played(on)
  assert.deepEqual(await on.list(), { isGitRepo: true, points: [{ turn: 1, changedCount: 3, capturedAt: 11 }, { turn: 2, changedCount: 0, capturedAt: 22 }] })
})

test('K-40 a child lists the turns that it has from its parent, with the parent’s points', async () => {
  const on = stage()
  played(on)
  const child = new FakeSession('kid', { parentSession: 's', seedLength: on.session.seq })
  child.events.push(...on.session.events)
  child.turn(3)
  on.engine.turns = [{ turn: 3, changedCount: 1, capturedAt: 33 }]
  on.engine.points = [
    point({ id: 's1', kind: 'turn-start', turn: 1 }),
    point({ id: 'e1', kind: 'turn-end', turn: 1, at: 11 }),
    point({ id: 'x', kind: 'turn-end', turn: 2, session: 'other' }),
  ]
  const expected = [{ turn: 1, changedCount: 3, capturedAt: 11 }, { turn: 3, changedCount: 1, capturedAt: 33 }]
  assert.deepEqual((await on.turns.list(child)).points, expected)
  assert.deepEqual((await on.turns.list(child)).points, expected)
  assert.equal(on.engine.asked.filter(asked => asked.startsWith('diff')).length, 1, 'points do not change, so they are compared once')
})

test('c000_13 c000_14 a restore: exact, inside the turn, and answered with exactly these members', async () => {
  const on = stage()
  played(on)
  on.session.append('turn/start', { turn: 3 })
  on.engine.outcome = outcome({ restored: ['b', 'a'], removed: ['c'], childSessionId: 'kid', nth: 2 })
  assert.deepEqual(await on.restore({ turn: 1 }), { restored: ['a', 'b', 'c'], childSessionId: 'kid', contextOnly: false, undoPoint: -2 })
  assert.deepEqual(on.engine.restores, [{ target: 't1', scope: 'both', exact: true, guard: 'warn', gitOnly: true, insideTurn: true }])
})

test('c000_13 an unknown turn names those there are, or none', async () => {
  const on = stage()
  await assert.rejects(Promise.resolve(on.restore({ turn: 1 })), /there is no turn 1; available: none/)
  played(on)
  await assert.rejects(Promise.resolve(on.restore({ turn: 7 })), /there is no turn 7; available: 1, 2/)
  for (const args of [{}, { turn: '1' }, { turn: 1.5 }, { turn: 0 }, { turn: 1, all: true }, null]) await assert.rejects(Promise.resolve(on.restore(args)))
  assert.deepEqual(on.engine.restores, [])
})

test('c000_17 K-03 the undo point takes the operation back, whatever turns came since', async () => {
  const on = stage()
  played(on)
  on.engine.outcome = outcome({ restored: ['a'], nth: 3 })
  assert.deepEqual(await on.restore({ turn: -2 }), { restored: ['a'], contextOnly: false, undoPoint: -3 })
  assert.ok(on.engine.asked.includes('undo 2'))
})

test('TE38 c000_16 outside git only the conversation goes back, and turns are listed all the same', async () => {
  const on = stage()
  played(on)
  on.engine.turns = []
  on.engine.opened = { root: '/shop', isGitRepo: false, provider: 'copy' }
  on.engine.outcome = outcome({ contextOnly: true, childSessionId: 'kid' })
  const { isGitRepo, points } = (await on.list()) as { isGitRepo: boolean; points: { turn: number }[] }
  assert.deepEqual([isGitRepo, points.map(({ turn }) => turn)], [false, [1, 2]])
  assert.deepEqual(await on.restore({ turn: 1 }), { restored: [], childSessionId: 'kid', contextOnly: true })
})

test('without an engine the conversation goes back and the reason is said', async () => {
  const on = stage()
  const { first } = played(on)
  on.engine.fails = Object.assign(new Error('rwd is not on the PATH'), { code: 'NO_ENGINE' })
  const { without, points } = await on.turns.list(on.session)
  assert.deepEqual([without, points.length], ['rwd is not on the PATH', 2])
  const done = (await on.restore({ turn: 1 })) as { childSessionId: string; contextOnly: boolean }
  assert.equal(done.contextOnly, true)
  const child = on.ctx.live.get(done.childSessionId)
  assert.deepEqual([child?.header.parentSession, child?.header.seedLength], ['s', first + 1])
})

test('mayRestore: never refuses a model, ask asks, and a person who typed the command is not asked', async () => {
  const never = stage({ mayRestore: 'never' })
  played(never)
  await assert.rejects(Promise.resolve(never.restore({ turn: 1 })), /REWIND_DENIED.*never/)
  assert.deepEqual(never.engine.restores, [])
  await never.turns.restore({ agent: never.agent, person: true }, 1)
  assert.equal(never.engine.restores.length, 1)
  const ask = stage({ mayRestore: 'ask' })
  played(ask)
  await assert.rejects(Promise.resolve(ask.restore({ turn: 1 })), /REWIND_DENIED/)
  const yes = stage({ mayRestore: 'ask' }, { approval: { request: async () => 'allowed-once' } })
  played(yes)
  yes.session.append('turn/start', { turn: 3 })
  await yes.restore({ turn: 1 })
  assert.equal(yes.engine.restores.length, 1)
})

test('c000_13 a call without a session is an error', async () => {
  const on = stage()
  const exec = { callId: 'c', name: 'x', arguments: {}, signal: on.signal }
  const [list, restore] = on.tools
  await assert.rejects(Promise.resolve(list?.execute({}, exec)), /needs the session/)
  await assert.rejects(Promise.resolve(restore?.execute({ turn: 1 }, exec)), /needs the session/)
})
