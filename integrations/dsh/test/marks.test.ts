import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Captures } from '../src/capture.ts'
import type { Agent } from '../src/host.ts'
import { instruction, Marks, markTools, promptSection, routeOf } from '../src/marks.ts'
import { agentOf, config, FakeContext, FakeEngine, FakeSession } from './support.ts'

type Chunk = Record<string, unknown>

const says = (text: string): Chunk[] => [{ type: 'text-delta', text }, { type: 'finish', reason: { kind: 'stop' } }]

function stage(answers: (Chunk[] | Error)[], raw: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
  const session = new FakeSession()
  const requests: Record<string, unknown>[] = []
  const llm = {
    async *stream(options: Record<string, unknown>) {
      requests.push(options)
      const answer = answers.shift() ?? []
      if (answer instanceof Error) throw answer
      yield* answer
    },
    ...more,
  }
  const ctx = new FakeContext({ llm }, session)
  const engine = new FakeEngine()
  const captures = new Captures({ ctx: ctx.as, config: config(raw), engine, log: ctx.logger, turnClosed: async () => undefined })
  const marks = new Marks({ ctx: ctx.as, config: config(raw), engine, captures, log: ctx.logger })
  const agent = agentOf(session, { options: { provider: 'p', model: 'm' } })
  return { session, ctx, engine, marks, agent, requests, signal: new AbortController() }
}

/** A mark, an exploration of 25 characters in two messages, and the call that folds. */
async function explored(on: ReturnType<typeof stage>): Promise<void> {
  on.session.append('turn/start', { turn: 1 })
  on.session.user('find out')
  on.session.assistant('', ['mark'])
  await on.marks.mark(on.session, ' where is it ')
  on.session.result('mark', 'mark 1')
  on.session.assistant('looking here', ['a'])
  on.session.result('a', 'found it..!')
  on.session.assistant('', ['fold'])
}

test('c001_01 to 04 a mark is the length of the log and the open turn; ids count up', async () => {
  const on = stage([])
  assert.deepEqual(await on.marks.mark(on.session), { id: 1, logLength: 0 })
  on.session.append('turn/start', { turn: 4 })
  assert.deepEqual(await on.marks.mark(on.session, ' why '), { id: 2, logLength: 1 })
  assert.deepEqual(on.engine.marks, [
    { id: 1, logLength: 0, turn: null, folded: false },
    { id: 2, logLength: 1, turn: 4, folded: false, objective: 'why' },
  ])
})

test('TM12 TM13 one message replaces the region, and the mark is stamped', async () => {
  const on = stage([says('short report..')])
  await explored(on)
  assert.equal(await on.marks.service().hasActive('s'), true)
  const before = on.session.seq
  const folded = await on.marks.fold(on.agent, on.signal.signal, 'fold')
  assert.deepEqual(folded, { markId: 1, foldedNodes: 2, start: 4, end: 5, foldedChars: 25, reportChars: 14 })
  assert.equal(on.session.seq, before + 1)
  const report = on.session.events.at(-1)
  assert.equal(report?.type, 'user/message')
  assert.deepEqual(report?.surfaceOp, { op: 'replace', start: 4, end: 5 })
  assert.deepEqual(report?.sourceEventSeqs, [4, 5])
  assert.equal(await on.marks.service().hasActive('s'), false)
})

test('TM16 c001_19 no mark, and a mark that is folded, are refused', async () => {
  const on = stage([says('short')])
  await assert.rejects(on.marks.fold(on.agent, on.signal.signal), { code: 'NO_CHECKPOINT' })
  await explored(on)
  await on.marks.fold(on.agent, on.signal.signal, 'fold')
  on.session.result('fold', 'folded')
  on.session.assistant('again', ['fold2'])
  await assert.rejects(on.marks.fold(on.agent, on.signal.signal, 'fold2'), { code: 'EMPTY_REGION' })
})

test('TM18 TM21 TM27 TM28 what fails writes nothing and leaves the mark', async () => {
  const failing: [string, (Chunk[] | Error)[]][] = [
    ['SHRINK', [says('x'.repeat(25))]],
    ['REPORT_FAILED', [[{ type: 'text-delta', text: 'half' }, { type: 'finish', reason: { kind: 'error', failure: { message: 'overloaded' } } }]]],
  ]
  for (const [code, answers] of failing) {
    const on = stage(answers)
    await explored(on)
    const before = on.session.seq
    await assert.rejects(on.marks.fold(on.agent, on.signal.signal, 'fold'), { code })
    assert.equal(on.session.seq, before)
    assert.equal(await on.marks.service().hasActive('s'), true)
  }
  const stopped = stage([says('short')])
  await explored(stopped)
  stopped.signal.abort()
  await assert.rejects(stopped.marks.fold(stopped.agent, stopped.signal.signal, 'fold'), { code: 'ABORTED' })
})

test('TM22 TM24 an empty answer is asked again, and when none comes the end and the tokens are told', async () => {
  const nothing = [
    { type: 'usage', usage: { outputTokens: 9, reasoningTokens: 9 } },
    { type: 'finish', reason: { kind: 'max-tokens' } },
  ]
  const on = stage([nothing, says('short')])
  await explored(on)
  assert.equal((await on.marks.fold(on.agent, on.signal.signal, 'fold')).reportChars, 5)
  const never = stage([nothing, nothing], { reportRetries: 1 })
  await explored(never)
  await assert.rejects(never.marks.fold(never.agent, never.signal.signal, 'fold'), (error: Error & { code: string }) => {
    assert.equal(error.code, 'NO_REPORT')
    assert.match(error.message, /max-tokens; 9 output tokens, 9 of them reasoning/)
    return true
  })
  assert.equal(never.requests.length, 2)
})

test('TM15 TM30 the request has the configured route, the language, the system prompt and the tools', async () => {
  const on = stage([says('short')], { reportProvider: 'rp', reportModel: 'rm', reportLanguage: 'zh', reportMaxTokens: 77 })
  Object.assign(on.session, { requestHeader: () => ({ config: { provider: 'hp', model: 'hm' }, system: 'be good', tools: [{ name: 't' }] }) })
  await explored(on)
  await on.marks.fold(on.agent, on.signal.signal, 'fold')
  const [request] = on.requests
  assert.deepEqual([request?.['provider'], request?.['model'], request?.['maxTokens'], request?.['system']], ['rp', 'rm', 77, 'be good'])
  assert.deepEqual(request?.['tools'], [{ name: 't' }])
  assert.match(JSON.stringify(request?.['messages']), /where is it.*## 发现/)
})

test('TM25 thinking is switched off where the route offers it', async () => {
  const more = { resolveModelInfo: async () => ({ reasoning: { efforts: [{ id: 'off' }, { id: 'high' }] } }) }
  const on = stage([says('short')], {}, more)
  await explored(on)
  await on.marks.fold(on.agent, on.signal.signal, 'fold')
  assert.equal(on.requests[0]?.['reasoningEffort'], 'off')
})

test('TM31 the route is the configured one, else that of the last request, else the agent’s', () => {
  const none = { reportProvider: undefined, reportModel: undefined }
  const agent: Pick<Agent, 'options'> = { options: { provider: 'ap', model: 'am' } }
  const header = { config: { provider: 'hp', model: 'hm' } }
  assert.deepEqual(routeOf({ reportProvider: 'p', reportModel: 'm' }, header, agent), { provider: 'p', model: 'm' })
  assert.deepEqual(routeOf(none, header, agent), { provider: 'hp', model: 'hm' })
  assert.deepEqual(routeOf(none, undefined, agent), { provider: 'ap', model: 'am' })
  assert.equal(routeOf(none, undefined, { options: { provider: 'ap', model: '' } }), undefined)
})

test('c001_13 CHANGED: what changes under the report is not folded; one fold at a time', async () => {
  const on = stage([])
  const llm = on.ctx.services['llm'] as { stream: unknown }
  llm.stream = async function* () {
    on.session.append('user/message', { content: [] }, { surfaceOp: { op: 'replace', start: 4, end: 5 } })
    await assert.rejects(on.marks.fold(on.agent, on.signal.signal, 'fold'), { code: 'FOLD_IN_PROGRESS' })
    yield* says('short')
  }
  await explored(on)
  await assert.rejects(on.marks.fold(on.agent, on.signal.signal, 'fold'), { code: 'CHANGED' })
})

test('K-15 a report whose mark was not stamped is found: the mark is stamped and nothing is folded again', async () => {
  const on = stage([says('short')])
  await explored(on)
  const stamp = on.engine.completeFold.bind(on.engine)
  on.engine.completeFold = async () => {
    throw new Error('killed')
  }
  await on.marks.fold(on.agent, on.signal.signal, 'fold')
  assert.match(on.ctx.told.join(), /UNSTAMPED/)
  on.engine.completeFold = stamp
  const before = on.session.seq
  assert.equal((await on.marks.fold(on.agent, on.signal.signal, 'fold')).start, 4)
  assert.equal(on.session.seq, before)
  assert.equal(await on.marks.service().hasActive('s'), false)
})

test('TM39 c001_18 one warning in a turn that would end with an open exploration; errors only warn', async () => {
  const on = stage([])
  await on.marks.turnStopping(on.agent, 1)
  assert.equal(on.agent.steered.length, 0)
  await on.marks.mark(on.session)
  await on.marks.turnStopping(on.agent, 1)
  await on.marks.turnStopping(on.agent, 1)
  assert.equal(on.agent.steered.length, 1)
  on.engine.fails = new Error('broken')
  await on.marks.turnStopping(on.agent, 2)
  assert.equal(on.agent.steered.length, 1)
  assert.match(on.ctx.told.join(), /broken/)
  on.engine.fails = undefined
  on.engine.marks = on.engine.marks.map(mark => ({ ...mark, folded: true }))
  await on.marks.turnStopping(on.agent, 3)
  assert.equal(on.agent.steered.length, 1)
})

test('TM33 TM34 TM36 the tools: names, rendering, and no session', async () => {
  const on = stage([])
  const [mark, rewind] = markTools(on.marks, config({ toolName: 'mark_here' }))
  assert.deepEqual([mark?.name, rewind?.name], ['mark_here', 'rewind'])
  const render = (nodes: number) => rewind?.output.render({}, { markId: 1, foldedNodes: nodes, foldedChars: 25, reportChars: 15 })[0]?.text
  assert.match(render(1) ?? '', /^folded 1 node /)
  assert.match(render(2) ?? '', /^folded 2 nodes /)
  const exec = { callId: 'c', name: 'rewind', arguments: {}, signal: on.signal.signal }
  await assert.rejects(Promise.resolve(rewind?.execute({}, exec)), { code: 'NO_SESSION' })
  await assert.rejects(Promise.resolve(mark?.execute({ why: 1 }, exec)), /no argument why/)
})

test('c001_07 c001_16 the section names the tools; the report has five sections in order', () => {
  const section = promptSection(config({ toolName: 'mark_here' }))
  assert.deepEqual([section.name, section.order], ['tool:checkpoint', 150])
  assert.match(section.text, /`mark_here`.*`rewind`/)
  assert.match(instruction('en', 'x'), /## Findings\n## Files and Artifacts\n## Decisions\n## Unresolved Questions\n## Recommended Next Step/)
  assert.match(instruction('zh'), /## 发现\n## 文件与产物\n## 决策\n## 未决问题\n## 建议的下一步/)
})
