import assert from 'node:assert/strict'
import { test } from 'node:test'

import { hostHasBarriers, mountBarriers } from '../src/barriers.ts'
import { agentOf, FakeContext, FakeSession } from './support.ts'

function stage() {
  const session = new FakeSession()
  const ctx = new FakeContext({}, session)
  mountBarriers(ctx.as)
  const order: string[] = []
  const flush = ctx.sessions.flush
  ctx.sessions.flush = async one => {
    order.push('flush:start')
    await new Promise(resolve => setImmediate(resolve))
    const took = await flush(one)
    order.push('flush:end')
    return took
  }
  async function* adapter() {
    order.push('adapter')
    yield 'chunk'
  }
  const pull = async (options: object) => {
    const chunks: unknown[] = []
    for await (const chunk of (await ctx.run('llm/stream', [options], adapter)) as AsyncIterable<unknown>) chunks.push(chunk)
    return chunks
  }
  const execute = (more: object) =>
    ctx.run('tools/execute', [{ callId: 'c', name: 'x', arguments: {}, signal: new AbortController().signal, ...more }], async () => (order.push('body'), 'done'))
  return { session, ctx, order, pull, execute, agent: agentOf(session) }
}

/** The chain hands over promises; a stream has to be pulled through it. */
const direct = (ctx: FakeContext, options: object, adapter: () => unknown): unknown => {
  const [listener] = ctx.listeners.get('llm/stream') ?? []
  return (listener as unknown as (options: object, next: () => unknown) => unknown)(options, adapter)
}

test('TN01 the flush is over before the adapter is made, and that happens at the first pull', async () => {
  const { ctx, order } = stage()
  async function* adapter() {
    order.push('adapter')
    yield 'chunk'
  }
  const stream = direct(ctx, { sessionId: 's' }, adapter) as AsyncIterable<unknown>
  assert.deepEqual(order, [])
  for await (const chunk of stream) assert.equal(chunk, 'chunk')
  assert.deepEqual(order, ['flush:start', 'flush:end', 'adapter'])
})

test('TN02 requests of no session, or of one that is not live, pass', async () => {
  const { pull, order } = stage()
  await pull({})
  await pull({ sessionId: 'gone' })
  assert.deepEqual(order, ['adapter', 'adapter'])
})

test('TN04 TN07 a flush that fails lets neither the adapter nor the tool run', async () => {
  const { ctx, order, execute, agent } = stage()
  ctx.flushFails = 'disk full'
  const stream = direct(ctx, { sessionId: 's' }, () => order.push('adapter')) as AsyncIterable<unknown>
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, /disk full/)
  await assert.rejects(execute({ agent }), /disk full/)
  assert.ok(!order.includes('adapter') && !order.includes('body'))
})

test('TN05 TN08 top-level tools flush first; nested ones and those without an agent do not', async () => {
  const { order, execute, agent } = stage()
  assert.equal(await execute({ agent }), 'done')
  assert.deepEqual(order.splice(0), ['flush:start', 'flush:end', 'body'])
  await execute({ agent, parent: Symbol('outer') })
  await execute({})
  assert.deepEqual(order, ['body', 'body'])
})

test('c004_07 a call that was cancelled during the flush does not run', async () => {
  const { order, execute, agent } = stage()
  const stop = new AbortController()
  stop.abort()
  const result = (await execute({ agent, signal: stop.signal })) as { isError: boolean; error: { info: unknown } }
  assert.equal(result.isError, true)
  assert.deepEqual(result.error.info, { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' })
  assert.ok(!order.includes('body'))
})

test('c004_08 the step before is on the disk before the next request is made from it', async () => {
  const { ctx, agent } = stage()
  assert.equal(await ctx.run('agent/pre-step', [{ agent }]), 'host')
  ctx.flushFails = 'disk full'
  await assert.rejects(ctx.run('agent/pre-step', [{ agent }]), /disk full/)
})

test('the host’s own policy is found by its row; a row that is off does not count', () => {
  const name = '@deepseek-ai/dsh-session-checkpoint-policy'
  const having = (...entries: unknown[]) => hostHasBarriers(new FakeContext({ loader: { entries: () => entries } }).as)
  assert.equal(having({ options: { name: 'x' } }, { options: { name } }), true)
  assert.equal(having({ options: { name, disabled: true } }), false)
  assert.equal(hostHasBarriers(new FakeContext().as), false)
  assert.equal(hostHasBarriers(new FakeContext({ loader: { entries: () => null } }).as), false)
})
