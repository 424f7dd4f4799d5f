import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Captures } from '../src/capture.ts'
import { badLabel, Named, namedTools } from '../src/named.ts'
import { agentOf, config, FakeContext, FakeEngine, FakeSession } from './support.ts'

function stage() {
  const session = new FakeSession()
  const other = new FakeSession('other')
  const ctx = new FakeContext({}, session, other)
  const engine = new FakeEngine()
  const parts = { ctx: ctx.as, config: config(), engine, log: ctx.logger }
  const captures = new Captures({ ...parts, turnClosed: async () => undefined })
  return { session, other, ctx, engine, agent: agentOf(session), named: new Named({ ...parts, captures }) }
}

test('TQ03 no turn has ended: refused, and nothing is written', async () => {
  const { named, agent, session, engine } = stage()
  session.append('turn/start', { turn: 1 })
  await assert.rejects(named.set(agent, 'good', undefined, undefined), { code: 'NO_COMPLETED_TURN' })
  assert.deepEqual(engine.asked, [])
})

test('c003_01 the log is on the disk before the line is asked for; another live session can be named', async () => {
  const { named, agent, session, other, engine, ctx } = stage()
  session.turn(1)
  other.turn(1)
  assert.deepEqual(await named.set(agent, 'good', ' one\ntwo | three ', undefined), { label: 'good', session: 's', seq: 3 })
  assert.deepEqual(ctx.flushed, ['s'])
  assert.ok(engine.asked.includes('name s good one two / three'))
  await named.set(agent, 'there', undefined, 'other')
  assert.ok(engine.asked.includes('name other there'))
  await assert.rejects(named.set(agent, 'x', undefined, 'gone'), { code: 'SESSION_NOT_LIVE' })
})

test('K-42 a label cannot forge a line', async () => {
  for (const label of ['', '  ', 'a\nb', 'a | session=x | seq=0', ' a', 'a ', 'x'.repeat(201)]) assert.notEqual(badLabel(label), undefined, JSON.stringify(label))
  assert.equal(badLabel('before the refactoring'), undefined)
  const { named, agent, session } = stage()
  session.turn(1)
  await assert.rejects(named.set(agent, 'a | session=x | seq=0', undefined, undefined), { code: 'BAD_LABEL' })
})

test('TQ09 TQ10 the newest line of that label of that session; others are no match and nothing is forked', async () => {
  const { named, agent, session, engine, ctx } = stage()
  const first = session.turn(1)
  const second = session.turn(2)
  engine.names = [
    { label: 'good', session: 's', seq: first.seq },
    { label: 'good', session: 's', seq: second.seq },
    { label: 'good', session: 'x', seq: 0 },
    { label: 'theirs', session: 'x', seq: 0 },
  ]
  const { childSessionId, seq } = await named.rewind(agent, 's', 'good')
  assert.equal(seq, second.seq)
  const child = ctx.live.get(childSessionId)
  assert.deepEqual([child?.header.parentSession, child?.header.seedLength], ['s', second.seq + 1])
  assert.match(JSON.stringify(child?.events.at(-1)?.data), /rewound to checkpoint good/)
  const before = ctx.live.size
  await assert.rejects(named.rewind(agent, 's', 'theirs'), { code: 'LABEL_OF_OTHER_SESSION' })
  await assert.rejects(named.rewind(agent, 's', 'nobody'), { code: 'LABEL_NOT_FOUND' })
  assert.equal(ctx.live.size, before)
})

test('TQ06 automatic lines: root sessions only, errors under their own name, and a failure only warns', async () => {
  const { named, session, engine, ctx } = stage()
  await named.turnClosed(session, session.turn(1))
  await named.turnClosed(session, session.turn(2, 1, 'error'))
  assert.deepEqual(engine.asked.filter(asked => asked.startsWith('name')), ['name s auto-turn', 'name s auto-error'])
  const sub = new FakeSession('sub', { origin: 'subagent' })
  await named.turnClosed(sub, sub.turn(1))
  assert.ok(!engine.asked.includes('name sub auto-turn'))
  engine.fails = new Error('read-only')
  await named.turnClosed(session, session.turn(3))
  assert.match(ctx.told.join(), /auto-turn was not noted: read-only/)
})

test('c003_01 to 04 the tools have the arguments of the source system', () => {
  const { named } = stage()
  const tools = namedTools(named).map(({ name, parameters }) => [name, parameters['required'] ?? []])
  assert.deepEqual(tools, [['agent_checkpoint', ['label']], ['agent_rewind', ['sessionId', 'label']], ['agent_checkpoint_list', []]])
})
