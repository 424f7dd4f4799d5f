import assert from 'node:assert/strict'
import { test } from 'node:test'

import { parseCheckpoint, parseRewind } from '../src/grammar.ts'

const target = (raw: string): unknown => {
  const command = parseRewind(raw)
  return command.kind === 'restore' ? [command.scope, command.target.text] : command.kind
}

test('TA01 empty, blank and list are the list', () => {
  for (const raw of ['', '   ', 'list', ' LIST ']) assert.equal(parseRewind(raw).kind, 'list')
})

test('TA03 TA18 step N in any case and spacing; anything but a number from 1 on is a usage error', () => {
  for (const raw of ['step 3', 'STEP   3', ' Step 3 ']) assert.deepEqual(target(raw), ['all', 'step:3'])
  for (const raw of ['step 0', 'step abc', 'step', 'step -1', 'step 1.5', 'step 1 2']) assert.equal(target(raw), 'usage', raw)
  assert.deepEqual(target('turn 2'), ['all', 't2'])
})

test('TA04 a scope and its target; a bare scope is a usage error', () => {
  assert.deepEqual(target('Workspace latest'), ['workspace', 'latest'])
  assert.deepEqual(target('session last'), ['session', 'latest'])
  assert.deepEqual(target('all a1b2'), ['all', 'a1b2'])
  for (const raw of ['workspace', 'session', 'config', 'all', 'latest x']) assert.equal(target(raw), 'usage', raw)
})

test('TA06 anything else is an id', () => {
  for (const raw of ['a1b2c3d4', 'clear everything', 'constructor', '__proto__']) assert.deepEqual(target(raw), ['all', raw])
})

test('TA07 preview takes a target; alone or with a bad one it is a usage error', () => {
  const command = parseRewind('PREVIEW step 2')
  assert.deepEqual(command, { kind: 'preview', target: { text: 'step:2' } })
  for (const raw of ['preview', 'preview step 0']) assert.equal(parseRewind(raw).kind, 'usage', raw)
})

test('c002_03 --files: each path once, in order, for the workspace alone', () => {
  const spaced = parseRewind('a1b2 --files b,a,b')
  assert.deepEqual(spaced, { kind: 'restore', scope: 'workspace', target: { text: 'a1b2' }, files: ['b', 'a'] })
  assert.deepEqual(parseRewind('workspace a1b2 --files=b,a,b'), spaced)
  for (const raw of ['a1b2 --files', 'a1b2 --files ,', 'session a1b2 --files a', 'all a1b2 --files a', '--files a', 'clear --files a'])
    assert.equal(parseRewind(raw).kind, 'usage', raw)
})

test('c002_03 clear, and clear for all sessions', () => {
  assert.deepEqual(parseRewind('clear'), { kind: 'clear', all: false })
  for (const raw of ['clear --all', 'clear -a', 'CLEAR all']) assert.deepEqual(parseRewind(raw), { kind: 'clear', all: true })
})

test('c000_18 a number is a turn, a negative one an operation; TA09 other text is a note', () => {
  assert.deepEqual(parseCheckpoint(''), { kind: 'turns' })
  for (const raw of ['3', 'turn 3', ' restore 3 ']) assert.deepEqual(parseCheckpoint(raw), { kind: 'restore', turn: 3 })
  assert.deepEqual(parseCheckpoint('-2'), { kind: 'restore', turn: -2 })
  assert.deepEqual(parseCheckpoint('note before the change'), { kind: 'note', note: 'before the change' })
  assert.deepEqual(parseCheckpoint('it works'), { kind: 'note', note: 'it works' })
  for (const raw of ['note', 'note  ', '0', 'diff a']) assert.equal(parseCheckpoint(raw).kind, 'usage', raw)
  const long = parseCheckpoint(`note ${'ü'.repeat(900)}`)
  assert.equal(long.kind === 'note' && long.note.length, 500)
})
