import assert from 'node:assert/strict'
import { test } from 'node:test'

import { blocksOf, findReport, FoldError, isReport, sameRegion, selectRegion, surfaceOf, textChars } from '../src/surface.ts'
import { FakeSession } from './support.ts'

const select = (session: FakeSession, anchor: number, call?: string): unknown => {
  try {
    const { start, end, nodes } = selectRegion(session.events, anchor, call)
    return [start, end, nodes.length]
  } catch (error) {
    assert.ok(error instanceof FoldError)
    return error.code
  }
}

/** The mark is taken while the call that marks runs. */
function marked(): { log: FakeSession; anchor: number } {
  const log = new FakeSession()
  log.user('find out')
  log.assistant('I mark', ['mark'])
  const anchor = log.seq
  log.result('mark', 'mark 1')
  return { log, anchor }
}

test('TM01 the region follows the anchor and leaves the call that folds', () => {
  const { log, anchor } = marked()
  const first = log.assistant('look', ['a'])
  const last = log.result('a', 'seen')
  log.assistant('I fold', ['fold'])
  assert.deepEqual(select(log, anchor), [first.seq, last.seq, 2])
  assert.deepEqual(select(log, anchor, 'fold'), [first.seq, last.seq, 2])
})

test('TM03 TM06 nothing between is empty, and so is the mark alone', () => {
  const log = new FakeSession()
  log.user('find out')
  assert.equal(select(log, 1), 'EMPTY_REGION')
  log.assistant('I fold', ['fold'])
  assert.equal(select(log, 1), 'EMPTY_REGION')
  const only = marked()
  only.log.assistant('I fold', ['fold'])
  assert.equal(select(only.log, only.anchor), 'EMPTY_REGION')
})

test('TM04 c001_12 a call without its answer is never parted from it', () => {
  const open = marked()
  open.log.assistant('look', ['a'])
  open.log.assistant('I fold', ['fold'])
  assert.equal(select(open.log, open.anchor), 'UNBALANCED')
  const { log, anchor } = marked()
  const first = log.assistant('look', ['a'])
  const last = log.result('a', 'seen')
  log.assistant('again', ['b', 'c'])
  log.result('b', 'seen')
  log.assistant('I fold', ['fold'])
  assert.deepEqual(select(log, anchor), [first.seq, last.seq, 2])
})

test('TM07 what ran beside the mark is folded; only the answer of the mark stays', () => {
  const log = new FakeSession()
  log.user('find out')
  log.assistant('I mark and look', ['mark', 'a', 'b'])
  const anchor = log.seq
  log.result('mark', 'mark 1')
  const first = log.result('a', 'seen')
  const last = log.result('b', 'seen')
  log.assistant('I fold', ['fold'])
  assert.deepEqual(select(log, anchor), [first.seq, last.seq, 2])
})

test('TM09 TM19 without a message of the model it runs to the end; an empty one carries no call', () => {
  const log = new FakeSession()
  log.user('one')
  log.user('two')
  assert.deepEqual(select(log, 0), [0, 1, 2])
  const { log: other, anchor } = marked()
  const first = other.assistant('look', ['a'])
  const last = other.result('a', 'seen')
  other.assistant('I fold', ['fold'])
  other.assistant('')
  assert.deepEqual(select(other, anchor), [first.seq, last.seq, 2])
})

test('c001_20 deviation 17: what stands for older messages stays', () => {
  const log = new FakeSession()
  log.assistant('look', ['old'])
  const old = log.result('old', 'a long answer')
  log.user('find out')
  log.assistant('I mark', ['mark'])
  const anchor = log.seq
  log.result('mark', 'mark 1')
  const first = log.assistant('look', ['a'])
  const last = log.result('a', 'seen')
  log.append('tool/result', { message: { content: [{ type: 'tool-result', toolCallId: 'old', content: [] }] } }, { surfaceOp: { op: 'replace', start: old.seq, end: old.seq } })
  log.assistant('I fold', ['fold'])
  assert.deepEqual(select(log, anchor), [first.seq, last.seq, 2])
})

test('TM10 a selection is the same by start, end and length', () => {
  const region = { start: 1, end: 2, nodes: [{}, {}] } as never as ReturnType<typeof selectRegion>
  assert.ok(sameRegion(region, { ...region }))
  for (const other of [{ start: 0 }, { end: 3 }, { nodes: [] }]) assert.ok(!sameRegion(region, { ...region, ...other }))
})

test('c001_14 what the model reads is counted, however deep; pictures count nothing', () => {
  const blocks = [
    { type: 'text', text: 'ab' },
    { type: 'reasoning', text: 'c' },
    { type: 'tool-call', arguments: '{}' },
    { type: 'image', data: 'x'.repeat(99) },
    { type: 'tool-result', content: [{ type: 'text', text: 'def' }, { type: 'tool-result', content: [{ type: 'text', text: 'g' }] }] },
  ]
  assert.equal(textChars(blocks), 9)
  assert.deepEqual(blocksOf({ seq: 0, type: 'user/message', time: 0, data: { content: 'text' } }), [])
})

test('TM37 K-15 a report is known by its source, and found again when its mark was not stamped', () => {
  const { log, anchor } = marked()
  const first = log.assistant('look', ['a'])
  const last = log.result('a', 'seen')
  log.assistant('I fold', ['fold'])
  const body = { content: [{ type: 'text', text: 'found' }], source: { kind: 'plugin', plugin: 'rewind' } }
  const report = log.append('user/message', body, { surfaceOp: { op: 'replace', start: first.seq, end: last.seq }, sourceEventSeqs: [first.seq, last.seq] })
  assert.ok(isReport(report))
  assert.ok(!isReport(log.user('no')))
  assert.deepEqual(findReport(log.events, anchor)?.region.start, first.seq)
  assert.equal(findReport(log.events, report.seq + 1), undefined)
})

test('a surface that does not fit together is an error, not a guess', () => {
  const log = new FakeSession()
  log.append('user/message', {}, { surfaceOp: { op: 'replace', start: 4, end: 5 } })
  assert.throws(() => surfaceOf(log.events), { code: 'BROKEN_SURFACE' })
})
