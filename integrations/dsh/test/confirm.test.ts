import assert from 'node:assert/strict'
import { test } from 'node:test'

import { confirm, type Question } from '../src/confirm.ts'
import { agentOf, FakeContext, FakeSession } from './support.ts'

const open = new FakeSession('open')
open.append('turn/start', { turn: 1 })
const idle = new FakeSession('idle')
idle.turn(1)

const asking = (session = open, more: Partial<Question> = {}): Question => ({
  agent: agentOf(session),
  question: 'Go?',
  detail: 'a file',
  yes: ['Rewind'],
  no: 'Cancel',
  toolName: 'rewind',
  ...more,
})

const person = (answer: (id: string, labels: string[]) => unknown) => {
  const asked: unknown[] = []
  return {
    asked,
    ask: async (request: { questions: { id: string; options: { label: string }[] }[] }) => {
      asked.push(request)
      const [question] = request.questions
      return answer(question?.id ?? '', question?.options.map(option => option.label) ?? [])
    },
  }
}
const picks = (label: string) => person(id => ({ answers: [{ id, selected: [label] }] }))
const approver = (outcome: string | Error) => {
  const asked: unknown[] = []
  return {
    asked,
    request: async (request: unknown) => {
      asked.push(request)
      if (outcome instanceof Error) throw outcome
      return outcome
    },
  }
}

test('TH01 a person is asked before approval, approval before nobody', async () => {
  const userQuestions = picks('Rewind')
  const approval = approver('allowed-once')
  assert.deepEqual(await confirm(new FakeContext({ userQuestions, approval }).as, { confirmVia: 'auto' }, asking()), { allowed: true, choice: 0 })
  assert.deepEqual([userQuestions.asked.length, approval.asked.length], [1, 0])
  assert.deepEqual(await confirm(new FakeContext({ approval }).as, { confirmVia: 'auto' }, asking()), { allowed: true, choice: 0 })
  assert.equal((await confirm(new FakeContext().as, { confirmVia: 'auto' }, asking())).allowed, false)
})

test('TH02 TH07 a channel that was chosen is the only one, and without its service nothing is allowed', async () => {
  const userQuestions = picks('Rewind')
  const approval = approver('allowed-once')
  await confirm(new FakeContext({ userQuestions, approval }).as, { confirmVia: 'approval' }, asking())
  assert.deepEqual([userQuestions.asked.length, approval.asked.length], [0, 1])
  assert.equal((await confirm(new FakeContext({ approval }).as, { confirmVia: 'userQuestions' }, asking())).allowed, false)
  assert.equal((await confirm(new FakeContext({ userQuestions }).as, { confirmVia: 'approval' }, asking())).allowed, false)
})

test('TH04 TH05 TH14 anything but the label is a no', async () => {
  const answers: ((id: string) => unknown)[] = [
    id => ({ answers: [{ id, selected: ['Cancel'] }] }),
    id => ({ answers: [{ id, selected: [], custom: 'Rewind' }] }),
    id => ({ answers: [{ id, selected: ['Rewind'], custom: 'but not all' }] }),
    id => ({ answers: [{ id, selected: ['Rewind', 'Cancel'] }] }),
    id => ({ answers: [{ id, selected: ['rewind'] }] }),
    () => ({ answers: [{ id: 'another', selected: ['Rewind'] }] }),
    () => ({ answers: [] }),
    () => ({}),
    () => undefined,
    () => {
      throw new Error('no provider')
    },
  ]
  for (const answer of answers) {
    const said = await confirm(new FakeContext({ userQuestions: person(answer) }).as, { confirmVia: 'auto' }, asking())
    assert.equal(said.allowed, false, answer.toString())
  }
})

test('TH08 labels are those of the question; which yes was chosen is told', async () => {
  const userQuestions = picks('Everything')
  const said = await confirm(new FakeContext({ userQuestions }).as, { confirmVia: 'auto' }, asking(open, { yes: ['Some', 'Everything'], no: 'None' }))
  assert.deepEqual(said, { allowed: true, choice: 1 })
  assert.match(JSON.stringify(userQuestions.asked), /"Some".*"Everything".*"None"/)
})

test('TH10 only allowed-once counts; an error is a no', async () => {
  for (const outcome of ['rejected', 'cancelled', 'unavailable', 'allowed-always', new Error('x')]) {
    const said = await confirm(new FakeContext({ approval: approver(outcome) }).as, { confirmVia: 'auto' }, asking())
    assert.equal(said.allowed, false)
  }
})

test('TH11 TH13 TJ03 without an open turn approval is not asked, and the reason can be acted on', async () => {
  const approval = approver('allowed-once')
  const said = await confirm(new FakeContext({ approval }).as, { confirmVia: 'auto' }, asking(idle))
  assert.ok(!said.allowed && said.why.includes('open turn'))
  assert.equal(approval.asked.length, 0)
})
