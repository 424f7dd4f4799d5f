import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Captures } from '../src/capture.ts'
import { Commands } from '../src/commands.ts'
import { Turns } from '../src/turns.ts'
import { agentOf, config, FakeContext, FakeEngine, FakeSession, outcome, point, preview } from './support.ts'

const answering = (label: string) => ({
  asked: [] as { question: string; detail: string; options: { label: string }[] }[],
  async ask(request: { questions: { id: string; question: string; detail: string; options: { label: string }[] }[] }) {
    this.asked.push(...request.questions)
    return { answers: request.questions.map(({ id }) => ({ id, selected: [label] })) }
  },
})

function stage(label?: string, raw: Record<string, unknown> = {}) {
  const session = new FakeSession()
  const userQuestions = label === undefined ? undefined : answering(label)
  const ctx = new FakeContext(userQuestions === undefined ? {} : { userQuestions }, session)
  const engine = new FakeEngine()
  const parts = { ctx: ctx.as, config: config(raw), engine }
  const captures = new Captures({ ...parts, log: ctx.logger, turnClosed: async () => undefined })
  const commands = new Commands({ ...parts, captures, turns: new Turns({ ...parts, captures }), now: () => 2_000_000 })
  const agent = agentOf(session)
  const run = async (line: string) => {
    const [, name, rawInput] = /^\/(\w+)(.*)$/s.exec(line) ?? []
    const command = commands.definitions().find(definition => definition.name === name)
    if (command === undefined) throw new Error(`no command ${name}`)
    return command.handler({ agent, rawInput: rawInput ?? '', signal: new AbortController().signal })
  }
  return { session, ctx, engine, agent, run, questions: userQuestions }
}

test('TJ01 denied: nothing is restored, nothing forked', async () => {
  for (const on of [stage(), stage('Cancel')]) {
    const done = await on.run('/rewind latest')
    assert.equal(done.kind, 'error')
    assert.match(done.text ?? '', /^REWIND_DENIED: .*nothing was changed$/)
    assert.deepEqual(on.engine.restores, [])
  }
})

test('TJ06 the plan that was shown is the plan that is done', async () => {
  const on = stage('Rewind')
  on.session.turn(1)
  on.engine.previewed = preview({ overwrite: ['a'], plan: 'shown' })
  on.engine.outcome = outcome({ restored: ['a'], childSessionId: 'kid', guard: 'abcdef0123' })
  const done = await on.run('/rewind step 2')
  assert.equal(done.kind, 'success')
  assert.match(done.text ?? '', /restored 1 file[\s\S]*forked into kid[\s\S]*undo with "\/rewind abcdef01"/)
  assert.match(on.questions?.asked[0]?.detail ?? '', /overwrite or recreate: 1 file\n {2}a/)
  assert.deepEqual(on.engine.restores, [{ target: 'step:2', scope: 'both', exact: false, guard: 'warn', insideTurn: false, plan: 'shown' }])
  assert.deepEqual(on.agent.injected, [], 'the child is told, not the source')
})

test('TJ10 TJ13 TJ18 K-37 scopes: workspace leaves the conversation and tells its model; named files are the workspace alone', async () => {
  const on = stage('Rewind')
  on.engine.outcome = outcome({ restored: ['a'] })
  await on.run('/rewind workspace a1b2')
  await on.run('/rewind session a1b2')
  await on.run('/rewind all a1b2')
  await on.run('/rewind a1b2')
  await on.run('/rewind a1b2 --files a,b')
  assert.deepEqual(on.engine.restores.map(({ scope, paths }) => [scope, paths]), [
    ['files', undefined],
    ['chat', undefined],
    ['both', undefined],
    ['both', undefined],
    ['files', ['a', 'b']],
  ])
  assert.equal(on.agent.injected.length, 2)
  assert.match((await on.run('/rewind config a1b2')).text ?? '', /^CONFIG_RESTORE_FAILED/)
})

test('hand-made files need a decision, and the least is the first', async () => {
  for (const [label, drift] of [['Rewind, keep what others edited', 'keep'], ['Rewind everything', 'overwrite']] as const) {
    const on = stage(label)
    on.engine.previewed = preview({ handMade: ['mine'], undecided: ['mine'] })
    await on.run('/rewind latest')
    assert.equal(on.engine.restores[0]?.drift, drift)
    assert.ok(on.engine.asked.includes(`preview latest ${drift}`), 'the plan carries the decision')
  }
})

test('c002_37 not forked: an error that names what was done, with the way back', async () => {
  const on = stage('Rewind')
  on.engine.outcome = outcome({ status: 'partial', restored: ['a'], notForked: 'disk full', guard: 'abcdef0123' })
  const done = await on.run('/rewind latest')
  assert.equal(done.kind, 'error')
  assert.match(done.text ?? '', /restored 1 file.*partly\nsession: NOT forked: disk full\nguard: #abcdef01/)
})

test('TA19 TA12 TJ04 TJ19 what the engine refuses is said with its code and its hints', async () => {
  const codes = [
    ['not-found', 'CHECKPOINT_NOT_FOUND'],
    ['ambiguous', 'CHECKPOINT_AMBIGUOUS'],
    ['stale-plan', 'stale-plan'],
    ['NO_ENGINE', 'PROVIDER_UNAVAILABLE'],
  ]
  for (const [code, shown] of codes) {
    const on = stage('Rewind')
    on.engine.fails = Object.assign(new Error('no such point'), { code, hints: ['look again'] })
    const done = await on.run('/rewind abcd')
    assert.deepEqual([done.kind, done.text], ['error', `${shown}: no such point\nhint: look again`])
  }
})

test('TA18 TK05 usage errors touch nothing', async () => {
  const on = stage('Rewind')
  for (const line of ['/rewind step x', '/rewind preview', '/rewind workspace', '/rewind x --files', '/checkpoint note']) {
    const done = await on.run(line)
    assert.equal(done.kind, 'error', line)
    assert.match(done.text ?? '', /usage: \//)
  }
  assert.deepEqual(on.engine.asked, [])
})

test('TK04 a preview writes nothing and asks nobody', async () => {
  const on = stage('Rewind')
  const done = await on.run('/rewind preview latest --files a')
  assert.match(done.text ?? '', /run "\/rewind latest --files a" to apply$/)
  assert.deepEqual(on.engine.restores, [])
  assert.equal(on.questions?.asked.length, 0)
})

test('TK07 TK08 clear: nothing is a success; a no keeps everything; files stay', async () => {
  const nothing = stage('Clear')
  assert.deepEqual(await nothing.run('/rewind clear'), { kind: 'success', text: 'nothing to clear' })
  const no = stage('Cancel')
  no.engine.points = [point()]
  assert.equal((await no.run('/rewind clear')).kind, 'error')
  assert.ok(!no.engine.asked.some(asked => asked.startsWith('drop')))
  const yes = stage('Clear')
  yes.engine.points = [point()]
  yes.engine.dropped = 1
  assert.deepEqual(await yes.run('/rewind clear'), { kind: 'success', text: 'cleared 1 checkpoint; files untouched' })
  yes.engine.kept = 2
  assert.match((await yes.run('/rewind clear --all')).text ?? '', /untouched; 2 kept/)
  assert.deepEqual(yes.engine.asked.filter(asked => asked.startsWith('drop')), ['drop session', 'drop all'])
  assert.deepEqual(yes.questions?.asked[0]?.options.map(option => option.label), ['Clear', 'Cancel'])
})

test('TE01 TE02 c002_13 provider git outside git is refused with its reason, and inside it works', async () => {
  const inside = stage('Rewind', { provider: 'git' })
  inside.engine.opened = { root: '/shop', isGitRepo: true, provider: 'git' }
  for (const line of ['/rewind', '/rewind latest', '/rewind preview latest']) assert.equal((await inside.run(line)).kind, 'success', line)
  const on = stage('Rewind', { provider: 'git' })
  on.engine.opened = { root: '/shop', isGitRepo: false, provider: 'copy' }
  for (const line of ['/rewind', '/rewind latest', '/rewind preview latest']) assert.match((await on.run(line)).text ?? '', /^PROVIDER_UNAVAILABLE: .*\/shop/)
})

test('TD13 c002_09 a note makes a point; an unchanged one says so; before the first step there is nothing to hold', async () => {
  const on = stage()
  assert.match((await on.run('/checkpoint note x')).text ?? '', /no turn/)
  on.session.turn(1)
  on.engine.captured = async () => ({ id: 'abcdef0123', created: true, changed: 2 })
  assert.equal((await on.run('/checkpoint it works')).text, 'checkpoint #abcdef01: 2 files changed')
  assert.deepEqual(on.engine.requests[0], { kind: 'manual', turn: 1, step: 1, seq: on.session.seq, note: 'it works', trigger: 'checkpoint' })
  on.engine.captured = async () => ({ id: 'abcdef0123', created: false, changed: 0 })
  assert.match((await on.run('/checkpoint note again')).text ?? '', /^unchanged: nothing captured/)
  on.engine.captured = async () => ({ created: false, changed: 0, gap: 'no-space' })
  assert.match((await on.run('/checkpoint note again')).text ?? '', /no point was made: no-space/)
})

test('TD15 a point made by hand says what no checkpoint holds, new or not', async () => {
  const on = stage()
  on.session.turn(1)
  const uncovered = [{ path: 'big.bin', reason: 'too-large' }, { path: 'lib', reason: 'nested-repo' }]
  for (const created of [true, false]) {
    on.engine.captured = async () => ({ id: 'abcdef0123', created, changed: 1, uncovered })
    assert.match((await on.run('/checkpoint note x')).text ?? '', /#abcdef01.*\nnot covered by any checkpoint: 2 files\n {2}big\.bin \(too-large\)\n {2}lib \(nested-repo\)$/)
  }
})

test('c000_18 /checkpoint: a turn, −k, and the turns there are', async () => {
  const on = stage()
  on.session.turn(1)
  on.engine.turns = [{ turn: 1, changedCount: 1, capturedAt: 1 }]
  assert.match((await on.run('/checkpoint')).text ?? '', /usage: [\s\S]*checkpoints: turn 1 \(1 file\)/)
  on.engine.outcome = outcome({ restored: ['a'], childSessionId: 'kid', nth: 1 })
  assert.equal((await on.run('/checkpoint 1')).text, '1 file restored; conversation continues in kid. Read a file again before you edit it.\nundo with "/checkpoint -1"')
  await on.run('/checkpoint -1')
  assert.ok(on.engine.asked.includes('undo 1'))
})

test('one rewind of a session at a time', async () => {
  const on = stage('Rewind')
  const [first, second] = await Promise.all([on.run('/rewind latest'), on.run('/rewind latest')])
  assert.deepEqual([first?.kind, second?.text], ['success', 'a rewind of this session is under way'])
  assert.equal((await on.run('/rewind latest')).kind, 'success')
})

test('TD16 list and diff by /checkpoint and /rewind', async () => {
  const on = stage()
  assert.match((await on.run('/checkpoint list')).text ?? '', /no checkpoints yet/)
  for (const line of ['/checkpoint diff aa bb', '/rewind diff aa bb'])
    assert.equal((await on.run(line)).text, 'diff aa → bb: 1 added, 2 changed\n  a (added)\n  b (changed)\n  c (changed)')
})

test('deviation 12: with off, guards are kept and not listed', async () => {
  const guard = point({ kind: 'guard' })
  for (const [raw, listed] of [[{}, true], [{ preRewindCheckpoint: 'off' }, false]] as const) {
    const on = stage(undefined, raw)
    on.engine.points = [guard]
    assert.equal((await on.run('/rewind')).text?.includes('[guard]'), listed)
  }
})
