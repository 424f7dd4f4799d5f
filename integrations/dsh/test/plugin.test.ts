import assert from 'node:assert/strict'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import * as plugin from '../src/index.ts'
import { readConfig } from '../src/config.ts'
import { ForkError, forkLive } from '../src/fork.ts'
import type { CommandDefinition } from '../src/host.ts'
import { hostHome, placeOf } from '../src/home.ts'
import { agentOf, FakeContext, FakeSession } from './support.ts'

const TOOLS = ['checkpoint_list', 'checkpoint_restore', 'checkpoint', 'rewind', 'agent_checkpoint', 'agent_rewind', 'agent_checkpoint_list']

test('TL11 TN11 named exports, no default, and only three services without which it waits', () => {
  assert.ok(!('default' in plugin))
  assert.equal(plugin.name, 'rwd')
  assert.deepEqual(plugin.inject, ['subprocess', 'sessions', 'tools'])
})

test('TL20 it mounts with nothing but those, and asks for the rest where it is', () => {
  const ctx = new FakeContext()
  plugin.apply(ctx.as, {})
  assert.deepEqual(ctx.registered.map(tool => tool.name), TOOLS)
  assert.ok(ctx.provided.has('checkpoint'))
  assert.deepEqual(ctx.injected, ['commands', 'systemPrompt', 'sessionProjections'])
  assert.ok(ctx.listeners.has('llm/stream'), 'a host without barriers gets ours')
})

test('TL45 with the services: two commands, one short section, one projection; the host’s own barriers are enough', () => {
  const got: string[] = []
  const register = { register: (what: { name?: string; key?: string }) => void got.push(what.name ?? what.key ?? '') }
  const loader = { entries: () => [{ options: { name: '@deepseek-ai/dsh-session-checkpoint-policy' } }] }
  const ctx = new FakeContext({ commands: register, sessionProjections: register, systemPrompt: { section: (section: { name: string; text: string }) => void got.push(section.name, section.text.length < 600 ? 'short' : 'long') }, loader })
  plugin.apply(ctx.as)
  assert.deepEqual(got, ['rewind', 'checkpoint', 'tool:checkpoint', 'short', 'checkpoints'])
  assert.ok(!ctx.listeners.has('llm/stream'))
})

test('c002_48 enabled: false registers nothing; a bad value stops the load', () => {
  const ctx = new FakeContext()
  plugin.apply(ctx.as, { enabled: false })
  assert.deepEqual([ctx.registered.length, ctx.listeners.size, ctx.provided.size, ctx.disposers.length], [0, 0, 0, 0])
  assert.throws(() => plugin.apply(new FakeContext().as, { listLimit: 'many' }), /BAD_CONFIG: listLimit/)
})

test('TL21 TL23 without the program a turn goes on, it is told once, and /rewind says why', async () => {
  const session = new FakeSession()
  const commands: CommandDefinition[] = []
  const ctx = new FakeContext({ commands: { register: (command: CommandDefinition) => void commands.push(command) } }, session)
  process.env['RWD_BIN'] = '/no/such/rwd'
  try {
    plugin.apply(ctx.as, {})
    const agent = { id: 's', session, options: {} }
    const step = { agent, turn: 1, step: 1, messages: [], signal: new AbortController().signal }
    assert.equal(await ctx.run('agent/pre-step', [step]), 'host')
    session.append('turn/start', { turn: 1 })
    session.append('step/start', { turn: 1, step: 1 })
    const call = { agent, name: 'bash', callId: 'c', arguments: {}, signal: step.signal }
    assert.deepEqual(await ctx.run('tools/pre-execute', [call], () => ({ kind: 'allow' })), { kind: 'allow' })
    assert.equal(ctx.told.length, 1)
    assert.match(ctx.told[0] ?? '', /not protected.*RWD_BIN names/)
    const invocation = { agent: agentOf(session), rawInput: '', signal: step.signal }
    for (const rawInput of ['', ' latest', ' preview latest']) {
      const done = await commands.find(command => command.name === 'rewind')?.handler({ ...invocation, rawInput })
      assert.equal(done?.kind, 'error')
      assert.match(done?.text ?? '', /^PROVIDER_UNAVAILABLE: RWD_BIN names/)
    }
    assert.equal(ctx.told.length, 1)
    for (const dispose of ctx.disposers) await dispose()
  } finally {
    delete process.env['RWD_BIN']
  }
})

test('c000_19 a live fork: flushed first, its own id, the notice at the tail; an empty one has a parent', async () => {
  const session = new FakeSession()
  const end = session.turn(1)
  const ctx = new FakeContext({}, session)
  const id = await forkLive(ctx.as, { session: 's', boundary: end.seq, notice: 'read again' })
  assert.match(id, /^session-[0-9a-f-]{36}$/)
  assert.deepEqual(ctx.flushed, ['s', id])
  assert.match(JSON.stringify(ctx.live.get(id)?.events.at(-1)), /"kind":"plugin","plugin":"rwd".*append/)
  const empty = await forkLive(ctx.as, { session: 's', boundary: null, child: 'asked-for' })
  assert.deepEqual([empty, ctx.live.get('asked-for')?.header.parentSession, ctx.live.get('asked-for')?.seq], ['asked-for', 's', 0])
  await assert.rejects(forkLive(ctx.as, { session: 'gone', boundary: 0 }), (error: ForkError) => error.code === 'SESSION_NOT_LIVE')
})

test('TG15 the host’s home: the variable if it is not blank, else ~/.dsh', () => {
  assert.equal(hostHome({ DSH_HOME: '/x/y' }), '/x/y')
  assert.ok(hostHome({ DSH_HOME: '  ' }).endsWith('/.dsh'))
  assert.ok(hostHome({ DSH_HOME: '~/d' }).endsWith('/d') && !hostHome({ DSH_HOME: '~/d' }).includes('~'))
})

test('TG12 TG13 a relative directory of the settings is below the host’s home if that is named, else below where the host runs', () => {
  assert.equal(placeOf('points', {}), join(process.cwd(), 'points'))
  assert.equal(placeOf('points', { DSH_HOME: ' ' }), join(process.cwd(), 'points'))
  assert.equal(placeOf('a/../points', { DSH_HOME: '/x/y' }), '/x/y/points')
  assert.equal(placeOf('/points', { DSH_HOME: '/x/y' }), '/points')
  assert.equal(placeOf('~/points', { DSH_HOME: '/x/y' }), join(homedir(), 'points'))
  for (const key of ['dataDir', 'snapshotDir']) assert.equal(readConfig({ [key]: 'points' }).config.dataDir, placeOf('points'))
})
