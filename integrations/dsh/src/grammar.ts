/** What is typed behind `/rewind` and `/checkpoint` (002-03, 000-18). Pure; nothing is looked up here. */

/** How a point is addressed. `text` is the one token that the engine resolves (design § 6). */
export interface Address {
  readonly text: string
}

export type RewindScope = 'all' | 'workspace' | 'session' | 'config'

export type RewindCommand =
  | { readonly kind: 'list' }
  | { readonly kind: 'restore'; readonly scope: RewindScope; readonly target: Address; readonly files?: readonly string[] }
  | { readonly kind: 'preview'; readonly target: Address; readonly files?: readonly string[] }
  | { readonly kind: 'diff'; readonly from: string; readonly to: string }
  | { readonly kind: 'clear'; readonly all: boolean }
  | { readonly kind: 'usage'; readonly why: string }

export const REWIND_USAGE =
  'usage: /rewind [list] | [workspace|session|config|all] <id|latest|step N|turn N> [--files a,b] | preview <target> | diff <a> <b> | clear [--all]'

export const CHECKPOINT_USAGE =
  'usage: /checkpoint <turn> | -<k> (take the k-th restore back) | list | note <text> | diff <a> <b>'

const usage = (why: string): { kind: 'usage'; why: string } => ({ kind: 'usage', why })

const SCOPES: Readonly<Record<string, RewindScope>> = { workspace: 'workspace', session: 'session', config: 'config', all: 'all' }

/**
 * The address that the words mean: a keyword, a position, else an id prefix. Keywords in any case; an id is matched
 * without regard to case by the engine, and a name keeps its own.
 */
export function parseAddress(words: readonly string[]): Address | { readonly why: string } {
  const [first, ...rest] = words
  if (first === undefined) return { why: 'a target is missing' }
  const word = first.toLowerCase()
  if (word === 'step' || word === 'turn') {
    const [count, ...more] = rest
    if (count === undefined) return { why: `${word} needs a number` }
    if (!/^[1-9]\d{0,8}$/.test(count) || more.length > 0) return { why: `${word} needs a number from 1 on, not ${rest.join(' ')}` }
    return { text: word === 'step' ? `step:${count}` : `t${count}` }
  }
  if (word === 'latest' || word === 'last') return rest.length === 0 ? { text: 'latest' } : { why: `nothing may follow ${word}` }
  // Whatever else it is, it is an id: an unknown one is said to be unknown (002-03).
  return { text: words.join(' ') }
}

/** Splits a suffix `--files a,b` or `--files=a,b` off; paths are kept in order, each once (002-03). */
function splitFiles(text: string): { rest: string; files?: readonly string[]; why?: string } {
  const at = /(^|\s)--files(=|\s+|$)/.exec(text)
  if (at === null) return { rest: text }
  const rest = text.slice(0, at.index)
  const listed = text.slice(at.index + at[0].length)
  const files = [...new Set(listed.split(',').map(path => path.trim()).filter(path => path !== ''))]
  return files.length === 0 ? { rest, why: '--files needs at least one path' } : { rest, files }
}

/** `/rewind …` */
export function parseRewind(raw: string): RewindCommand {
  const { rest, files, why } = splitFiles(raw.trim())
  if (why !== undefined) return usage(why)
  const words = rest.split(/\s+/).filter(word => word !== '')
  const first = words[0]?.toLowerCase()
  const selected = files === undefined ? {} : { files }
  if (first === undefined || (first === 'list' && words.length === 1))
    return files === undefined ? { kind: 'list' } : usage('--files belongs to a target')
  if (first === 'clear' && words.length === 1) return files === undefined ? { kind: 'clear', all: false } : usage('--files belongs to a target')
  if (first === 'clear' && words.length === 2 && /^(--all|-a|all)$/i.test(words[1] ?? '')) return { kind: 'clear', all: true }
  if (first === 'diff') {
    const [, from, to, ...more] = words
    if (from === undefined || to === undefined || more.length > 0 || files !== undefined) return usage('diff needs two points')
    return { kind: 'diff', from, to }
  }
  if (first === 'preview') {
    const target = parseAddress(words.slice(1))
    return 'why' in target ? usage(target.why) : { kind: 'preview', target, ...selected }
  }
  const scope = Object.hasOwn(SCOPES, first) ? SCOPES[first] : undefined
  const target = parseAddress(scope === undefined ? words : words.slice(1))
  if ('why' in target) return usage(target.why)
  if (files !== undefined && scope !== undefined && scope !== 'workspace') return usage('--files is for the workspace only')
  // Named files alone mean the workspace alone: the conversation cannot go back in part (K-37).
  return { kind: 'restore', scope: scope ?? (files === undefined ? 'all' : 'workspace'), target, ...selected }
}

export type CheckpointCommand =
  | { readonly kind: 'turns' }
  | { readonly kind: 'list' }
  | { readonly kind: 'restore'; readonly turn: number }
  | { readonly kind: 'note'; readonly note: string }
  | { readonly kind: 'diff'; readonly from: string; readonly to: string }
  | { readonly kind: 'usage'; readonly why: string }

/** Longest note, in characters (002-01). */
export const NOTE_LIMIT = 500

/** `/checkpoint …`: a number at the end is a turn (000-18), −k an operation; any other text is a note (TA09). */
export function parseCheckpoint(raw: string): CheckpointCommand {
  const text = raw.trim()
  if (text === '') return { kind: 'turns' }
  if (/^list$/i.test(text)) return { kind: 'list' }
  const turn = /^(?:turn\s+|restore\s+)?(-?\d{1,9})$/i.exec(text)
  if (turn !== null) {
    const number = Number(turn[1])
    return number === 0 ? usage('turns are counted from 1') : { kind: 'restore', turn: number }
  }
  const diff = /^diff\s+(\S+)\s+(\S+)$/i.exec(text)
  if (diff !== null) return { kind: 'diff', from: diff[1] ?? '', to: diff[2] ?? '' }
  if (/^diff(\s|$)/i.test(text)) return usage('diff needs two points')
  const note = /^note(?:\s+([\s\S]*))?$/i.exec(text)
  const said = (note === null ? text : (note[1] ?? '')).trim()
  return said === '' ? usage('note needs a text') : { kind: 'note', note: [...said].slice(0, NOTE_LIMIT).join('') }
}
