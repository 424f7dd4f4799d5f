/**
 * The engine over the sidecar's protocol (docs/sidecar.md): every name of the wire is in this file. What comes in is
 * checked member by member; a member that is missing gets the value that promises least.
 */

import type { Found } from './binary.ts'
import type { Config } from './config.ts'
import type { Captured, CaptureRequest, Engine, Listing, Mark, NamedPoint, Opened, Outcome, Point, Preview, RestoreRequest, SessionRef } from './engine.ts'
import { forkLive } from './fork.ts'
import type { Context, Logger } from './host.ts'
import { Sidecar } from './sidecar.ts'

export interface WireParts {
  readonly ctx: Context
  readonly config: Config
  readonly log: Logger
  readonly find: () => Promise<Found>
  readonly started: () => void
}

type Json = Readonly<Record<string, unknown>>

const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {})
const array = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const number = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined)
const optional = <K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } => (value === undefined ? {} : ({ [key]: value } as { [P in K]?: V }))

/** Lists of paths are lists of `{path, …}` everywhere. */
const paths = (value: unknown): string[] => array(value).map(item => text(item) ?? text(object(item)['path'])).filter(path => path !== undefined)

const blocked = (value: unknown): { path: string; reason: string }[] =>
  array(value).map(item => ({ path: text(object(item)['path']) ?? '', reason: text(object(item)['reason']) ?? 'unknown' }))

const captured = (value: unknown): Captured => {
  const answer = object(value)
  const gap = answer['gap']
  return {
    created: answer['created'] === true,
    changed: number(answer['changed']) ?? 0,
    ...optional('id', text(answer['id'])),
    ...optional('gap', text(gap) ?? text(object(gap)['reason'])),
  }
}

const point = (value: unknown): Point => {
  const raw = object(value)
  return {
    id: text(raw['id']) ?? '',
    session: bare(text(raw['session']) ?? ''),
    kind: text(raw['kind']) ?? 'mutation',
    at: timeOf(raw['at']),
    changed: number(raw['changed']) ?? 0,
    bytes: number(raw['newBytes']) ?? 0,
    names: array(raw['names']).map(String),
    restorable: raw['restorable'] !== false,
    ...optional('turn', number(raw['turn'])),
    ...optional('step', number(raw['step'])),
    ...optional('tree', text(raw['tree'])),
    ...optional('trigger', text(raw['trigger'])),
    ...optional('note', text(raw['note'])),
    ...optional('cutBefore', number(raw['cutBefore'])),
  }
}

/** Milliseconds, from milliseconds or an ISO time. */
function timeOf(value: unknown): number {
  return number(value) ?? (Number.isNaN(Date.parse(text(value) ?? '')) ? 0 : Date.parse(text(value) ?? ''))
}

/** `dsh:abc` → `abc`. */
const bare = (session: string): string => session.replace(/^dsh:/, '')

const outcome = (value: unknown): Outcome => {
  const raw = object(value)
  const status = text(raw['status'])
  return {
    status: status === 'partial' || status === 'nothing' ? status : 'restored',
    restored: paths(raw['restored']),
    removed: paths(raw['removed']),
    keptNew: paths(raw['keptNew']),
    blocked: blocked(raw['blocked']),
    contextOnly: raw['contextOnly'] === true,
    warnings: array(raw['warnings']).map(String),
    ...optional('op', text(raw['op'])),
    ...optional('guard', text(raw['guard'])),
    ...optional('childSessionId', text(raw['childSessionId'])),
    ...optional('notForked', text(raw['notForked'])),
  }
}

const preview = (value: unknown): Preview => {
  const raw = object(value)
  const cut = raw['cut'] === null || raw['cut'] === undefined ? null : object(raw['cut'])
  return {
    plan: text(raw['plan']) ?? '',
    target: text(raw['target']) ?? text(object(raw['target'])['label']) ?? '',
    overwrite: paths(raw['overwrite']),
    recreate: paths(raw['recreate']),
    remove: paths(raw['remove']),
    keptNew: paths(raw['keptNew']),
    handMade: paths(raw['handMade']),
    foreign: paths(raw['foreign']),
    blocked: blocked(raw['blocked']),
    unchanged: number(raw['unchanged']) ?? 0,
    cut: cut === null ? null : { seq: number(cut['seq']) ?? null, rule: text(cut['rule']) ?? 'boundary' },
  }
}

export class SidecarEngine implements Engine {
  readonly #sidecar: Sidecar

  constructor({ ctx, config, log, find, started }: WireParts) {
    this.#sidecar = new Sidecar({
      subprocess: ctx.subprocess,
      config,
      log,
      find,
      started,
      handlers: {
        'session.fork': async raw => {
          const params = object(raw)
          const child = await forkLive(ctx, {
            session: bare(text(params['session']) ?? ''),
            boundary: number(params['boundary']) ?? null,
            ...optional('child', text(params['child'])),
            ...optional('notice', text(params['notice'])),
          })
          return { child }
        },
        'session.flush': async raw => {
          const session = ctx.sessions.get(bare(text(object(raw)['session']) ?? ''))
          if (session !== undefined) await ctx.sessions.flush(session)
          return {}
        },
        // The plugin has asked its user before it calls; whoever else asks gets a no.
        'approval.ask': async () => ({ decision: 'unavailable' }),
      },
    })
  }

  async open({ id, cwd, parent, seedLength }: SessionRef): Promise<Opened> {
    const raw = object(await this.#call('session.open', id, { roots: [cwd], ...optional('parent', parent), ...optional('seedLength', seedLength) }))
    return { root: text(raw['root']) ?? cwd, isGitRepo: raw['isGitWorktree'] === true, provider: raw['provider'] === 'git' ? 'git' : 'copy' }
  }

  async turnBegin(session: string, turn: number, seq: number): Promise<Captured> {
    return captured(await this.#call('turn.begin', session, { turn, position: { ordinal: seq } }))
  }

  async turnEnd(session: string, turn: number, seq: number, reason: string): Promise<Captured> {
    return captured(await this.#call('turn.end', session, { turn, position: { ordinal: seq }, reason }))
  }

  async stepEnd(session: string, turn: number, step: number, seq: number): Promise<void> {
    await this.#call('step.end', session, { turn, step, position: { ordinal: seq } })
  }

  async capture(session: string, { seq, ...rest }: CaptureRequest): Promise<Captured> {
    return captured(await this.#call('capture', session, { ...rest, position: { ordinal: seq } }))
  }

  async list(session: string): Promise<Listing> {
    const raw = object(await this.#call('list', session, {}))
    return { points: array(raw['points']).map(point), ...optional('unprotectedSince', text(raw['unprotectedSince'])) }
  }

  async preview(session: string, request: RestoreRequest): Promise<Preview> {
    return preview(await this.#call('preview', session, request))
  }

  async restore(session: string, request: RestoreRequest): Promise<Outcome> {
    return outcome(await this.#call('restore', session, { ...request, confirmed: true }))
  }

  async undoNth(session: string, k: number, insideTurn: boolean): Promise<Outcome> {
    return outcome(await this.#call('undo', session, { nth: k, insideTurn, confirmed: true }))
  }

  async operations(session: string): Promise<number> {
    return number(object(await this.#call('list', session, { limit: 1 }))['operations']) ?? 0
  }

  async drop(session: string, all: boolean): Promise<number> {
    return number(object(await this.#call('drop', session, { all }))['dropped']) ?? 0
  }

  async mark(session: string, seq: number, turn: number | null, objective?: string): Promise<{ id: number; logLength: number }> {
    const raw = object(await this.#call('mark', session, { position: { ordinal: seq }, turn, ...optional('objective', objective) }))
    return { id: number(raw['id']) ?? 0, logLength: number(raw['logLength']) ?? seq }
  }

  async latestMark(session: string): Promise<Mark | undefined> {
    const raw = object(object(await this.#call('latestMark', session, {}))['mark'])
    const id = number(raw['id'])
    if (id === undefined) return undefined
    return { id, logLength: number(raw['logLength']) ?? 0, turn: number(raw['turn']) ?? null, folded: raw['folded'] === true, ...optional('objective', text(raw['objective'])) }
  }

  async completeFold(session: string, id: number): Promise<void> {
    await this.#call('completeFold', session, { id })
  }

  async nameSet(session: string, named: { label: string; note?: string; seq: number; limit: number }): Promise<void> {
    const { seq, ...rest } = named
    await this.#call('name.set', session, { ...rest, position: { ordinal: seq } })
  }

  async nameList(session: string): Promise<readonly NamedPoint[]> {
    return array(object(await this.#call('name.list', session, {}))['names']).map(item => {
      const raw = object(item)
      return { label: text(raw['label']) ?? '', session: bare(text(raw['session']) ?? ''), seq: number(raw['seq']) ?? 0, ...optional('note', text(raw['note'])) }
    })
  }

  end(): Promise<void> {
    return this.#sidecar.end()
  }

  #call(method: string, session: string, params: object): Promise<unknown> {
    return this.#sidecar.call(method, { session, harness: 'dsh', ...params })
  }
}
