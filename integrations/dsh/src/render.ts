/** What is printed: lists, previews, results (002-06, 002-30, 002-42). Pure. */

import type { Change, Opened, Outcome, Point, Preview } from './engine.ts'

/** Paths that a preview names (002-30). */
const SHOWN = 20
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** 1536 → `1.5 KiB`. Bytes have no decimals. */
export function bytes(count: number): string {
  let size = count
  let unit = 0
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit += 1
  }
  return unit === 0 ? `${size} B` : `${size.toFixed(1)} ${UNITS[unit] ?? ''}`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** Local time, and how long ago where that is less than an hour (TK14). */
export function when(at: number, now: number): string {
  const date = new Date(at)
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const text = `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  const age = now - at
  if (age < 0 || age >= 3_600_000) return text
  return `${text} (${age < 60_000 ? 'just now' : `${Math.floor(age / 60_000)} min ago`})`
}

/** Kinds that `/rewind` lists; turn points belong to `/checkpoint` (design § 13). */
const REWIND_KINDS = new Set(['mutation', 'step', 'auto', 'manual', 'guard'])

export function rewindPoints(points: readonly Point[]): Point[] {
  return points.filter(point => REWIND_KINDS.has(point.kind) || (point.kind === 'import' && point.fromRewind === true))
}

/** Where a point's conversation would be cut: `fork: ready (end of turn 1)`, `fork: ready (empty)` (deviation 1). */
function forkState(point: Point, turnAt: (seq: number) => number | undefined): string {
  if (point.cutBefore === undefined) return 'fork: ready (empty)'
  const turn = turnAt(point.cutBefore)
  return turn === undefined ? 'fork: ready' : `fork: ready (end of turn ${turn})`
}

function line(point: Point, opened: Opened, now: number, turnAt: (seq: number) => number | undefined): string {
  const place = point.turn === undefined ? 'between turns' : `turn ${point.turn}${point.step === undefined ? '' : ` step ${point.step}`}`
  const parts = [
    `#${point.id.slice(0, 8)}`,
    `[${point.kind}]`,
    `(${opened.provider})`,
    place,
    when(point.at, now),
    `trigger: ${point.kind === 'guard' ? 'rewind' : (point.trigger ?? 'none')}`,
    plural(point.changed, 'file'),
    bytes(point.bytes),
    opened.provider === 'git' && point.tree !== undefined ? `tree ${point.tree.slice(0, 8)}` : 'tree n/a',
    forkState(point, turnAt),
  ]
  if (point.note !== undefined) parts.push(JSON.stringify(point.note))
  if (point.names.length > 0) parts.push(`named ${point.names.join(', ')}`)
  if (!point.restorable) parts.push('unrestorable')
  return parts.join(' · ')
}

/** The list of `/rewind`, oldest first (002-06). */
export function renderList(
  points: readonly Point[],
  opened: Opened,
  limit: number,
  now: number,
  turnAt: (seq: number) => number | undefined,
  unprotected?: { readonly since: number; readonly reason?: string },
): string {
  const warning = unprotected === undefined ? [] : [`not protected since ${when(unprotected.since, now)}${unprotected.reason === undefined ? '' : `: ${unprotected.reason}`}`]
  if (points.length === 0) return [...warning, 'rewind: no checkpoints yet in this session'].join('\n')
  const shown = points.slice(-limit)
  const older = points.length - shown.length
  return [
    ...warning,
    `rewind: ${plural(points.length, 'checkpoint')} (newest last):`,
    ...shown.map(point => line(point, opened, now, turnAt)),
    ...(older > 0 ? [`${older} older not shown`] : []),
    'run "/rewind <id>" to restore files and fork the session from that checkpoint; "/rewind preview <id>" shows what would change',
  ].join('\n')
}

function named(title: string, paths: readonly string[]): string[] {
  if (paths.length === 0) return []
  const more = paths.length - SHOWN
  return [`${title}: ${plural(paths.length, 'file')}`, ...paths.slice(0, SHOWN).map(path => `  ${path}`), ...(more > 0 ? [`  … ${more} more`] : [])]
}

const withReason = (blocked: Preview['blocked']): string[] => blocked.map(({ path, reason }) => `${path} (${reason})`)

/** What a point made by hand does not hold, though nobody said that it may be left out (002-10). */
export function renderUncovered(uncovered: Preview['blocked']): string[] {
  return named('not covered by any checkpoint', withReason(uncovered))
}

/** What a restore would do (002-30). Never more than {@link SHOWN} paths of each kind. */
export function renderPreview(preview: Preview, address: string, command: string): string {
  const changed = [...preview.overwrite, ...preview.recreate]
  const point = /^[0-9a-f]{32}$/.test(preview.target) && !preview.target.startsWith(address.toLowerCase()) ? ` (#${preview.target.slice(0, 8)})` : ''
  const asked = preview.undecided.length === 0 ? '' : ', kept or restored as you say'
  const lines = [
    `preview of ${address}${point}: nothing is written`,
    ...named('overwrite or recreate', changed),
    ...named('remove', preview.remove),
    ...(changed.length + preview.remove.length + preview.undecided.length === 0 ? ['no file would change'] : []),
    `already matching: ${plural(preview.unchanged, 'file')}`,
    ...named('created after, left in place', preview.keptNew),
    ...named(`edited by hand since${asked}`, preview.handMade),
    ...named(`changed by another session${asked}`, preview.foreign),
    ...named('cannot be restored', withReason(preview.blocked)),
    cutLine(preview.cut),
    ...preview.notes,
    `run "${command}" to apply`,
  ]
  return lines.join('\n')
}

function cutLine(cut: Preview['cut']): string {
  if (cut === null) return 'the conversation stays as it is'
  return cut.seq === null ? 'the conversation would begin anew, in a child session' : `the conversation would be cut at the ${cut.rule}, in a child session`
}

/** The result of `/rewind` (002-42). The last line takes it back. */
export function renderOutcome(outcome: Outcome, opened: Opened, wantedFork: boolean): string {
  const touched = outcome.restored.length + outcome.removed.length
  const lines: string[] = []
  if (outcome.contextOnly) lines.push('workspace: files left as they are')
  else lines.push(`workspace: restored ${plural(touched, 'file')} (restore, ${opened.provider})${outcome.status === 'partial' ? ', partly' : ''}`)
  if (outcome.removed.length > 0) lines.push(...named('removed', outcome.removed))
  if (outcome.childSessionId !== undefined) lines.push(`session: forked into ${outcome.childSessionId}`)
  else if (outcome.notForked !== undefined) lines.push(`session: NOT forked: ${outcome.notForked}`)
  else if (wantedFork) lines.push('session: NOT forked')
  if (outcome.keptNew.length > 0) lines.push(`${plural(outcome.keptNew.length, 'file')} created after the checkpoint left in place: ${outcome.keptNew.slice(0, SHOWN).join(', ')}`)
  if (outcome.blocked.length > 0) lines.push(...named('not restored', withReason(outcome.blocked)))
  lines.push(...outcome.notes)
  if (outcome.guard !== undefined) lines.push(`guard: #${outcome.guard.slice(0, 8)}; undo with "/rewind ${outcome.guard.slice(0, 8)}"`)
  return lines.join('\n')
}

/** What differs between two points: counts, and names up to the limit (002-31). */
export function renderDiff(from: string, to: string, changes: readonly Change[]): string {
  const kinds = new Map<string, number>()
  for (const { kind } of changes) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const counts = [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ')
  return [`diff ${from} → ${to}: ${counts === '' ? 'no file differs' : counts}`, ...named('files', changes.map(({ path, kind }) => `${path} (${kind})`)).slice(1)].join('\n')
}
