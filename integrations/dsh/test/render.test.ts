import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Opened } from '../src/engine.ts'
import { bytes, renderList, renderOutcome, renderPreview, rewindPoints, when } from '../src/render.ts'
import { outcome, point, preview } from './support.ts'

const GIT: Opened = { root: '/shop', isGitRepo: true, provider: 'git' }
const COPY: Opened = { root: '/shop', isGitRepo: false, provider: 'copy' }
const none = (): undefined => undefined

test('c002_06 sizes have one decimal from KiB on', () => {
  assert.deepEqual([0, 1023, 1024, 1536, 1024 ** 2, 5 * 1024 ** 3, 2 * 1024 ** 4, 9000 * 1024 ** 4].map(bytes), [
    '0 B', '1023 B', '1.0 KiB', '1.5 KiB', '1.0 MiB', '5.0 GiB', '2.0 TiB', '9000.0 TiB',
  ])
})

test('TK14 the age is told under an hour only', () => {
  const at = new Date(2026, 7, 14, 12, 0, 1).getTime()
  assert.equal(when(at, at + 59_999), '2026-08-14 12:00:01 (just now)')
  assert.equal(when(at, at + 3 * 60_000), '2026-08-14 12:00:01 (3 min ago)')
  assert.equal(when(at, at + 3_600_000), '2026-08-14 12:00:01')
  assert.equal(when(at, at - 1), '2026-08-14 12:00:01')
})

test('TK10 TK16 newest last, with every field', () => {
  const points = [point({ cutBefore: 7 }), point({ id: 'ffff1111ffff1111', kind: 'guard', trigger: 'restore', changed: 2, note: 'why', restorable: false, names: ['good'] })]
  const [head, first, second, usage] = renderList(points, GIT, 10, 99_999_999, seq => (seq === 7 ? 1 : undefined)).split('\n')
  assert.equal(head, 'rewind: 2 checkpoints (newest last):')
  assert.match(first ?? '', /^#aaaa0000 · \[mutation\] · \(git\) · turn 1 step 1 · .* · trigger: write · 1 file · 100 B · tree bbbb0000 · fork: ready \(end of turn 1\)$/)
  assert.match(second ?? '', /^#ffff1111 · \[guard\] .* · trigger: rewind · 2 files · .* · fork: ready \(empty\) · "why" · named good · unrestorable$/)
  assert.match(usage ?? '', /^run "\/rewind <id>"/)
  assert.match(renderList([point()], COPY, 10, 0, none), /\(copy\).*tree n\/a/)
})

test('TK11 TK13 an empty list, and the number of those that are not shown', () => {
  assert.equal(renderList([], GIT, 10, 0, none), 'rewind: no checkpoints yet in this session')
  const many = Array.from({ length: 13 }, (_, at) => point({ id: `${at}`.padStart(8, '0') }))
  const lines = renderList(many, GIT, 10, 0, none).split('\n')
  assert.match(lines[1] ?? '', /^#00000003/)
  assert.equal(lines.at(-2), '3 older not shown')
})

test('a gap is said before anything else', () => {
  const [first] = renderList([point()], GIT, 10, 99_999_999, none, { since: 0, reason: 'busy' }).split('\n')
  assert.match(first ?? '', /^not protected since .*: busy$/)
})

test('design § 13: turn points belong to /checkpoint', () => {
  const kinds = ['turn-start', 'mutation', 'auto', 'step', 'manual', 'guard', 'turn-end', 'import']
  assert.deepEqual(rewindPoints(kinds.map(kind => point({ kind }))).map(({ kind }) => kind), ['mutation', 'auto', 'step', 'manual', 'guard'])
})

test('TK01 TK02 a preview names what would change, what stays, and how to apply; long lists are cut', () => {
  const paths = Array.from({ length: 25 }, (_, at) => `f${at}`)
  const text = renderPreview(preview({ overwrite: paths, keptNew: ['new'], unchanged: 4, cut: { seq: 9, rule: 'end of turn 1' } }), 't1', '/rewind t1')
  assert.match(text, /^preview of t1 \(#cccc0000\): nothing is written\noverwrite or recreate: 25 files\n {2}f0\n/)
  assert.match(text, /\n {2}f19\n {2}… 5 more\n/)
  assert.match(text, /already matching: 4 files\ncreated after, left in place: 1 file\n {2}new\nthe conversation would be cut at the end of turn 1, in a child session\nrun "\/rewind t1" to apply$/)
  const mine = renderPreview(preview({ handMade: ['mine'], undecided: ['mine'] }), 't1', 'x')
  assert.ok(mine.includes('edited by hand since, kept or restored as you say: 1 file\n  mine') && !mine.includes('no file would change'))
  assert.match(renderPreview(preview({ cut: { seq: null, rule: '' } }), 't1', 'x'), /no file would change[\s\S]*begin anew/)
})

test('c002_42 a result: files, session, what stays, the guard and the way back', () => {
  const text = renderOutcome(outcome({ restored: ['a', 'b'], removed: ['c'], keptNew: ['n'], childSessionId: 'kid', guard: 'abcdef0123456789' }), GIT, true)
  assert.equal(
    text,
    [
      'workspace: restored 3 files (restore, git)',
      'removed: 1 file',
      '  c',
      'session: forked into kid',
      '1 file created after the checkpoint left in place: n',
      'guard: #abcdef01; undo with "/rewind abcdef01"',
    ].join('\n'),
  )
  assert.match(renderOutcome(outcome({ status: 'partial', notForked: 'disk full' }), GIT, true), /partly\nsession: NOT forked: disk full/)
  assert.match(renderOutcome(outcome({ contextOnly: true, childSessionId: 'kid' }), COPY, true), /^workspace: files left as they are\nsession: forked into kid$/)
  assert.doesNotMatch(renderOutcome(outcome(), GIT, false), /session|guard/)
})
