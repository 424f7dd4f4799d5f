/** The messages that the model sees, and which of them a fold replaces (001-10 to 14). The engine's own rules, live. Pure. */

import type { SessionEvent } from './host.ts'

export interface SurfaceNode {
  readonly seq: number
  /** The earliest position that it stands for: a summary stands where the first of its messages stood. */
  readonly origin: number
  readonly event: SessionEvent
}

export interface Surface {
  readonly nodes: readonly SurfaceNode[]
  /** What was replaced by which event. */
  readonly replaced: readonly { readonly by: SessionEvent; readonly nodes: readonly SurfaceNode[] }[]
}

/** An expected refusal of a fold, with 001's code. */
export class FoldError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.name = 'FoldError'
    this.code = code
  }
}

/** Plays the surface operations of a log. */
export function surfaceOf(events: readonly SessionEvent[]): Surface {
  const nodes: SurfaceNode[] = []
  const replaced: { by: SessionEvent; nodes: readonly SurfaceNode[] }[] = []
  for (const event of events) {
    const op = event.surfaceOp
    if (op === undefined) continue
    if (op === 'append') {
      nodes.push({ seq: event.seq, origin: event.seq, event })
      continue
    }
    const from = nodes.findLastIndex(node => node.seq === op.start)
    const to = nodes.findLastIndex(node => node.seq === op.end)
    const first = nodes[from]
    if (first === undefined || to < from) throw new FoldError('BROKEN_SURFACE', `event ${event.seq} replaces what is not there`)
    replaced.push({ by: event, nodes: nodes.splice(from, to - from + 1, { seq: event.seq, origin: first.origin, event }) })
  }
  return { nodes, replaced }
}

interface Block {
  readonly type?: unknown
  readonly [key: string]: unknown
}

/** The content of a message event; what has another shape counts as nothing. */
export function blocksOf(event: SessionEvent): readonly Block[] {
  const holder = event.type === 'user/message' ? event.data : (event.data?.['message'] as Record<string, unknown> | undefined)
  const content = holder?.['content']
  return Array.isArray(content) ? content.filter((block): block is Block => typeof block === 'object' && block !== null) : []
}

const calls = (event: SessionEvent): string[] => blocksOf(event).filter(block => block.type === 'tool-call').map(block => String(block['id']))
const answers = (event: SessionEvent): string[] => blocksOf(event).filter(block => block.type === 'tool-result').map(block => String(block['toolCallId']))

/** Characters that the model reads: texts, reasoning, arguments, answers however deep; pictures count nothing (001-14). */
export function textChars(blocks: readonly Block[]): number {
  const length = (value: unknown): number => (typeof value === 'string' ? value.length : 0)
  return blocks.reduce((sum, block) => {
    switch (block.type) {
      case 'text':
      case 'reasoning':
        return sum + length(block['text'])
      case 'tool-call':
        return sum + length(block['arguments'])
      case 'tool-result':
        return sum + (Array.isArray(block['content']) ? textChars(block['content'] as Block[]) : 0)
      default:
        return sum
    }
  }, 0)
}

/** True for a message that says nothing and calls nothing: what an interrupted model leaves (TM19). */
const isEmpty = (event: SessionEvent): boolean =>
  blocksOf(event).every(block => (block.type === 'text' || block.type === 'reasoning') && block['text'] === '')

/** Messages next to each other; never none. */
export interface Region {
  readonly start: number
  readonly end: number
  readonly nodes: readonly SurfaceNode[]
}

export const regionChars = (region: Region): number => region.nodes.reduce((sum, node) => sum + textChars(blocksOf(node.event)), 0)

export const sameRegion = (a: Region, b: Region): boolean => a.start === b.start && a.end === b.end && a.nodes.length === b.nodes.length

function regionOf(nodes: readonly SurfaceNode[]): Region | undefined {
  const first = nodes[0]
  const last = nodes.at(-1)
  return first === undefined || last === undefined ? undefined : { start: first.seq, end: last.seq, nodes }
}

/** What is folded from a mark at `anchor` on, up to the message with the call that folds. */
export function selectRegion(events: readonly SessionEvent[], anchor: number, callId?: string): Region {
  const { nodes } = surfaceOf(events)
  const from = nodes.findIndex(node => node.origin >= anchor)
  if (from < 0) throw new FoldError('EMPTY_REGION', 'no message follows the mark')
  let region = nodes.slice(from, limit(events, nodes, anchor, callId))
  if (region.length === 0) throw new FoldError('EMPTY_REGION', 'no message lies between the mark and the call that folds')
  // The answer of the call that marked stays with its call; answers of calls made beside it do not (001-11).
  if (region[0]?.event.type === 'tool/result') region = region.slice(1)
  if (region.length === 0) throw new FoldError('EMPTY_REGION', 'only the answer of the call that marked follows the mark')
  const selected = regionOf(region.slice(0, balanced(region)))
  if (selected === undefined) throw new FoldError('UNBALANCED', 'a call in the exploration has no answer yet')
  return selected
}

function limit(events: readonly SessionEvent[], nodes: readonly SurfaceNode[], anchor: number, callId: string | undefined): number {
  const carries = (event: SessionEvent): boolean => (callId === undefined ? !isEmpty(event) : calls(event).includes(callId))
  const call = events.findLast(event => event.type === 'assistant/message' && event.surfaceOp !== undefined && carries(event))
  if (call === undefined) return nodes.length
  const at = nodes.findLastIndex(node => node.seq === call.seq)
  if (at >= 0) return at
  return call.seq >= anchor ? nodes.length : 0
}

/** The longest beginning in which every call has its answer (001-12). */
function balanced(nodes: readonly SurfaceNode[]): number {
  const open = new Set<string>()
  let length = 0
  nodes.forEach((node, at) => {
    for (const id of calls(node.event)) open.add(id)
    for (const id of answers(node.event)) open.delete(id)
    if (open.size === 0) length = at + 1
  })
  return length
}

/** True for the report of a fold (TM37). */
export function isReport(event: SessionEvent): boolean {
  const source = event.data?.['source'] as { kind?: unknown; plugin?: unknown } | undefined
  return event.type === 'user/message' && typeof event.surfaceOp === 'object' && source?.kind === 'plugin' && source.plugin === 'rewind'
}

/** A report that is in the log though its mark is not stamped: what a crash between the two leaves (K-15). */
export function findReport(events: readonly SessionEvent[], anchor: number): { region: Region; event: SessionEvent } | undefined {
  for (const { by, nodes } of surfaceOf(events).replaced) {
    if (by.seq < anchor || !isReport(by) || (nodes[0]?.origin ?? -1) < anchor) continue
    const sources = new Set(by.sourceEventSeqs ?? [])
    const region = nodes.every(node => sources.has(node.seq)) ? regionOf(nodes) : undefined
    if (region !== undefined) return { region, event: by }
  }
  return undefined
}
