import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Captures } from '../src/capture.ts'
import type { Captured } from '../src/engine.ts'
import type { SessionEvent } from '../src/host.ts'
import { agentOf, config, FakeContext, FakeEngine, FakeSession } from './support.ts'

const signal = new AbortController().signal

function stage(raw: Record<string, unknown> = {}) {
  const session = new FakeSession()
  const ctx = new FakeContext({}, session)
  const engine = new FakeEngine()
  const closed: SessionEvent[] = []
  let clock = 10_000_000
  const captures = new Captures({
    ctx: ctx.as,
    config: config(raw),
    engine,
    log: ctx.logger,
    turnClosed: async (_session, event) => void closed.push(event),
    now: () => clock,
  })
  captures.listen()
  const agent = agentOf(session)
  const tool = (name: string, callId = 'c1') => ctx.run('tools/pre-execute', [{ agent, name, callId, arguments: {}, signal }], () => ({ kind: 'allow' }))
  const preStep = (turn: number, step: number) => ctx.run('agent/pre-step', [{ agent, turn, step, messages: [], signal }])
  const open = (turn: number, step: number) => {
    session.append('turn/start', { turn })
    session.append('step/start', { turn, step })
  }
  return { session, ctx, engine, captures, agent, tool, preStep, open, closed, tick: (ms: number) => void (clock += ms) }
}

test('TD19 the point before a turn is made before its first step goes on', async () => {
  const { ctx, engine, preStep } = stage()
  let release: (() => void) | undefined
  engine.captured = () => new Promise<Captured>(resolve => (release = () => resolve({ created: true, changed: 0 })))
  let went = false
  const waiting = preStep(1, 1).then(() => (went = true))
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(went, false)
  release?.()
  await waiting
  assert.deepEqual(engine.asked, ['open s', 'begin s 1'])
  assert.deepEqual(ctx.told, [])
})

test('TD01 TD03 TD04 one point for a step, before its first change, shared by all who ask', async () => {
  const { ctx, engine, tool, open, agent, session } = stage()
  open(2, 1)
  const actor = { agent, name: 'write', callId: 'c2', signal }
  const decisions = await Promise.all([tool('write'), tool('bash', 'c3'), ctx.run('fs/write-intent', [{ targetKey: 'a' }, actor], () => 'go')])
  assert.deepEqual(decisions, [{ kind: 'allow' }, { kind: 'allow' }, 'go'])
  assert.deepEqual(engine.asked, ['open s', 'capture s mutation 2.1 write'])
  session.append('step/end', { turn: 2, step: 1 })
  session.append('step/start', { turn: 2, step: 2 })
  await tool('write')
  assert.equal(engine.requests.length, 2)
})

test('TD21 what a point holds is what was there before the tool wrote', async () => {
  const { ctx, engine, agent, open } = stage()
  open(1, 1)
  const order: string[] = []
  engine.captured = async () => {
    order.push('captured')
    await new Promise(resolve => setImmediate(resolve))
    order.push('kept')
    return { created: true, changed: 0 }
  }
  const writes = () => (order.push('written'), { kind: 'allow' })
  await ctx.run('tools/pre-execute', [{ agent, name: 'write', callId: 'c1', arguments: {}, signal }], writes)
  assert.deepEqual(order, ['captured', 'kept', 'written'])
})

test('design § 11: reads make no point', async () => {
  const { engine, tool, open } = stage()
  open(1, 1)
  await tool('read')
  await tool('grep')
  assert.deepEqual(engine.asked, [])
})

test('TD06 outside a step nothing is captured', async () => {
  const { engine, tool, session } = stage()
  await tool('bash')
  session.turn(1)
  await tool('bash')
  assert.deepEqual(engine.asked, [])
})

test('TG09 a session without a directory has no workspace, and nothing is captured', async () => {
  const { engine, session, tool, preStep, open } = stage()
  Object.assign(session, { header: { id: 's', createdAt: 1 } })
  await preStep(1, 1)
  open(1, 1)
  assert.deepEqual(await tool('bash'), { kind: 'allow' })
  await preStep(1, 2)
  assert.deepEqual(engine.asked, [])
})

test('TD07 c002_08 a point that fails changes no decision, is told once, and is not tried again in its step', async () => {
  const { ctx, engine, tool, open, preStep } = stage()
  engine.captured = async () => {
    throw new Error('no space')
  }
  await preStep(1, 1)
  open(1, 1)
  assert.deepEqual(await tool('bash'), { kind: 'allow' })
  assert.deepEqual(await tool('write'), { kind: 'allow' })
  assert.equal(engine.requests.length, 1)
  assert.equal(ctx.told.length, 1)
  assert.match(ctx.told[0] ?? '', /no space/)
})

test('onCaptureFailure block: a tool that may change files does not run without its point', async () => {
  const { engine, tool, open } = stage({ onCaptureFailure: 'block' })
  engine.captured = async () => ({ created: false, changed: 0, gap: 'deadline' })
  open(1, 1)
  const decision = (await tool('bash')) as { kind: string; reason: string }
  assert.equal(decision.kind, 'deny')
  assert.match(decision.reason, /deadline/)
  assert.deepEqual(await tool('read'), { kind: 'allow' })
})

test('TD09 TD10 points at intervals, from the second step on; c002_09 a failure does not move the clock', async () => {
  const { engine, preStep, tick } = stage({ autoCheckpoint: { intervalMinutes: 5 } })
  await preStep(1, 1)
  await preStep(1, 2)
  tick(60_000)
  await preStep(1, 3)
  assert.deepEqual(engine.requests.map(request => request.step), [2])
  tick(5 * 60_000)
  engine.captured = async () => ({ created: false, changed: 0, gap: 'busy' })
  await preStep(1, 4)
  engine.captured = async () => ({ created: true, changed: 1 })
  await preStep(1, 5)
  assert.deepEqual(engine.requests.map(request => request.step), [2, 4, 5])
})

test('autoCheckpoint can be switched off', async () => {
  const { engine, preStep } = stage({ autoCheckpoint: { enabled: false } })
  await preStep(1, 2)
  assert.deepEqual(engine.asked, [])
})

test('c000_07 the point after a turn is made after its log is flushed, and the next turn waits for it', async () => {
  const { ctx, session, engine, captures, closed, preStep } = stage()
  const end = session.turn(1)
  ctx.emit('session/event', session, end)
  await preStep(2, 1)
  await captures.settle()
  assert.deepEqual(ctx.flushed, ['s'])
  assert.deepEqual(engine.asked, ['open s', `end s 1 ${end.seq} completed`, 'begin s 2'])
  assert.deepEqual(closed, [end])
})

test('a flush that fails is told and costs no point', async () => {
  const { ctx, session, engine, captures } = stage()
  ctx.flushFails = 'disk full'
  ctx.emit('session/event', session, session.turn(1))
  await captures.settle()
  assert.match(ctx.told.join(), /disk full/)
  assert.ok(engine.asked.some(asked => asked.startsWith('end s 1')))
})

test('K-12 a call that meets a dead process is made once more in the next one, its session opened again', async () => {
  const { engine, captures, preStep, ctx } = stage()
  let deaths = 0
  engine.captured = async () => {
    if (deaths++ > 0) return { created: true, changed: 0 }
    captures.forget()
    throw Object.assign(new Error('gone'), { code: 'SIDECAR_GONE' })
  }
  await preStep(1, 1)
  assert.deepEqual(engine.asked, ['open s', 'begin s 1', 'open s', 'begin s 1'])
  assert.deepEqual(ctx.told, [])
})

test('a restore that was interrupted is told when its session is opened', async () => {
  const { ctx, session, captures, engine } = stage()
  engine.opened = { ...engine.opened, unfinished: 'abc' }
  await captures.open(session)
  assert.match(ctx.told.join(), /\/shop was interrupted: run "rwd recover --finish"/)
})

test('a turn that is cancelled does not wait for its point', async () => {
  const { session, captures, engine } = stage()
  engine.captured = () => new Promise<never>(() => undefined)
  const stop = new AbortController()
  const waiting = captures.preStep(session, 1, 1, stop.signal)
  stop.abort()
  await waiting
})

test('K-40 a subagent counts as its parent; a child says where its conversation began', async () => {
  const opened: unknown[] = []
  const engine = new FakeEngine()
  engine.open = async ref => (opened.push(ref), engine.opened)
  const ctx = new FakeContext()
  const captures = new Captures({ ctx: ctx.as, config: config(), engine, log: ctx.logger, turnClosed: async () => undefined })
  await captures.open(new FakeSession('sub', { origin: 'subagent', parentSession: 'p' }))
  await captures.open(new FakeSession('child', { parentSession: 'p', seedLength: 9 }))
  await assert.rejects(captures.open({ ...new FakeSession('none'), header: { id: 'none', createdAt: 1 } } as never), /no working directory/)
  assert.deepEqual(opened, [
    { id: 'sub', cwd: '/shop', subagentOf: 'p' },
    { id: 'child', cwd: '/shop', parent: 'p', seedLength: 9 },
  ])
})

test('a model whose files somebody else put back reads that before its next message', async () => {
  const { captures, agent, preStep } = stage()
  captures.tellModel('s', 'nobody knows that session yet')
  await preStep(1, 1)
  captures.tellModel('s', '[rwd] Files of the workspace were put back')
  assert.equal(agent.injected.length, 1)
  assert.match(JSON.stringify(agent.injected[0]), /put back/)
})
