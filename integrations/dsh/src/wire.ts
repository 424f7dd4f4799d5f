/**
 * The engine over the sidecar's protocol (docs/sidecar.md): every name of the wire is in this file. What comes in is
 * checked member by member; a member that is missing gets the value that promises least.
 */

import type { Found } from './binary.ts'
import type { Config } from './config.ts'
import type { Captured, CaptureRequest, Change, Engine, Listing, Mark, NamedPoint, Opened, Outcome, Point, Preview, RestoreRequest, SessionRef, TurnRecord } from './engine.ts'
import { forkLive } from './fork.ts'
import { hostHome } from './home.ts'
import { service, type Context, type Logger } from './host.ts'
import { Older } from './older.ts'
import { RpcError, type Handlers } from './rpc.ts'
import { Sidecar } from './sidecar.ts'

export interface WireParts {
  readonly ctx: Context
  readonly config: Config
  readonly log: Logger
  readonly find: () => Promise<Found>
  readonly gone: () => void
  /** A session's model has to know this before its next message. */
  readonly tellModel: (session: string, text: string) => void
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
    // What a rule of the user leaves out is no news.
    uncovered: blocked(answer['skipped']).filter(({ reason }) => !reason.startsWith('ignored')),
  }
}

const point = (value: unknown): Point => {
  const raw = object(value)
  return {
    id: text(raw['id']) ?? '',
    session: bare(text(raw['session']) ?? ''),
    kind: text(raw['kind']) ?? 'mutation',
    fromRewind: text(raw['callId'])?.startsWith(FROM_002) === true,
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

const turnRecord = (value: unknown): TurnRecord | undefined => {
  const raw = object(value)
  const turn = number(raw['turn'])
  return turn === undefined ? undefined : { turn, changedCount: number(raw['changedCount']) ?? 0, capturedAt: timeOf(raw['capturedAt']) }
}

/** Milliseconds, from milliseconds or an ISO time. */
function timeOf(value: unknown): number {
  return number(value) ?? (Number.isNaN(Date.parse(text(value) ?? '')) ? 0 : Date.parse(text(value) ?? ''))
}

/** `dsh:abc` → `abc`. */
const bare = (session: string): string => session.replace(/^dsh:/, '')

const outcome = (value: unknown, notForked?: string): Outcome => {
  const raw = object(value)
  const status = text(raw['status'])
  return {
    status: status === 'partial' || status === 'nothing' ? status : 'restored',
    restored: paths(raw['restored']),
    removed: paths(raw['removed']),
    keptNew: paths(raw['keptNew']),
    blocked: blocked(raw['blocked']),
    contextOnly: raw['contextOnly'] === true,
    notes: array(raw['notes']).map(String),
    ...optional('op', text(raw['op'])),
    ...optional('nth', number(raw['nth'])),
    ...optional('guard', text(raw['guard'])),
    ...optional('childSessionId', text(raw['childSessionId'])),
    ...optional('notForked', notForked),
  }
}

const preview = (value: unknown): Preview => {
  const raw = object(value)
  const cut = raw['cut'] === null || raw['cut'] === undefined ? null : object(raw['cut'])
  return {
    plan: text(raw['plan']) ?? '',
    target: text(raw['target']) ?? '',
    overwrite: paths(raw['overwrite']),
    recreate: paths(raw['recreate']),
    remove: paths(raw['remove']),
    keptNew: paths(raw['keptNew']),
    handMade: paths(raw['handMade']),
    foreign: paths(raw['foreign']),
    undecided: paths(raw['undecided']),
    notes: array(raw['notes']).map(String),
    blocked: blocked(raw['blocked']),
    unchanged: number(raw['unchanged']) ?? 0,
    cut: cut === null ? null : { seq: number(cut['seq']) ?? null, rule: text(cut['rule']) ?? 'boundary' },
  }
}

/** Kinds that `/rewind` clears (design § 13); turn points belong to `/checkpoint`, what came in from elsewhere stays. */
const REWIND_KINDS = ['mutation', 'step', 'auto', 'manual', 'guard']
const LISTED_KINDS = [...REWIND_KINDS, 'turn-start', 'turn-end', 'import']
/** How the points of 002's records begin their call ids. */
const FROM_002 = 'dsh-checkpoint-rewind/'

/** A turn's start is waited for; only a workspace that takes this long to look at goes without. */
const TURN_DEADLINE_MS = 10_000

const asked = ({ target, scope, exact, drift, guard, paths: selected, gitOnly, boundary }: RestoreRequest): object => ({
  target,
  scope,
  ...optional('boundary', boundary),
  policy: {
    exact,
    guard,
    ...optional('drift', drift),
    ...(drift === 'overwrite' ? { withOthers: true } : {}),
    ...(gitOnly === true ? { files: 'git-only' } : {}),
    ...(selected === undefined ? {} : { paths: selected.map(path => ({ path })) }),
  },
})

export class SidecarEngine implements Engine {
  readonly #sidecar: Sidecar
  readonly #older: Older
  readonly #view: string

  constructor({ ctx, config, log, find, gone, tellModel }: WireParts) {
    const { subprocess } = ctx
    this.#sidecar = new Sidecar({ subprocess, config, log, find, gone, handlers: handlers(ctx), restored: tellModel })
    this.#older = new Older({ subprocess, config, log, find, home: hostHome() })
    this.#view = config.dataDir ?? hostHome()
  }

  async open({ id, cwd, parent, seedLength, subagentOf }: SessionRef): Promise<Opened> {
    const raw = object(
      await this.#call('session.open', id, {
        harness: 'dsh',
        roots: [cwd],
        home: hostHome(),
        view: this.#view,
        ...optional('parent', parent),
        ...optional('seedLength', seedLength),
        ...optional('subagentOf', subagentOf),
      }),
    )
    const root = text(raw['root']) ?? cwd
    this.#older.begin(root)
    return { root, isGitRepo: raw['isGitWorktree'] === true, provider: raw['provider'] === 'git' ? 'git' : 'copy', ...optional('unfinished', text(raw['unfinished'])) }
  }

  async closeSession(session: string): Promise<void> {
    await this.#call('session.close', session, {})
  }

  async turnBegin(session: string, turn: number, seq: number): Promise<Captured> {
    return captured(await this.#call('turn.begin', session, { turn, position: { ordinal: seq }, deadlineMs: TURN_DEADLINE_MS }))
  }

  async turnEnd(session: string, turn: number, seq: number, reason: string): Promise<Captured> {
    return captured(await this.#call('turn.end', session, { turn, position: { ordinal: seq }, reason }))
  }

  async stepEnd(session: string, turn: number, step: number, seq: number): Promise<void> {
    await this.#call('step.end', session, { turn, step, position: { ordinal: seq } })
  }

  async capture(session: string, { seq, ...rest }: CaptureRequest): Promise<Captured> {
    // 002 lists the point before a step's first change, so the turn's start does not stand in for it.
    const besidesTurns = rest.kind === 'mutation' || rest.kind === 'manual'
    return captured(await this.#call('capture', session, { ...rest, position: { ordinal: seq }, besidesTurns }))
  }

  async list(session: string, allSessions = false): Promise<Listing> {
    // Records of an older store are listed beside new ones (TJ16).
    await this.#older.settled()
    const raw = object(await this.#call('list', session, { kinds: LISTED_KINDS, cuts: !allSessions, turns: !allSessions, allSessions }))
    return {
      points: array(raw['points']).map(point),
      turns: array(raw['turns']).map(turnRecord).filter(turn => turn !== undefined),
      ...optional('unprotectedSince', number(raw['unprotectedSince'])),
      ...optional('unprotectedReason', text(raw['unprotectedReason'])),
    }
  }

  async diff(session: string, from: string, to: string): Promise<readonly Change[]> {
    const changes = array(object(await this.#call('diff', session, { from, to }))['changes']).map(object)
    return changes.map(change => ({ path: text(change['path']) ?? text(object(change['path'])['path']) ?? '', kind: text(change['kind']) ?? text(change['change']) ?? 'changed' }))
  }

  async preview(session: string, request: RestoreRequest): Promise<Preview> {
    await this.#older.settled()
    return preview(await this.#call('preview', session, asked(request)))
  }

  async restore(session: string, request: RestoreRequest): Promise<Outcome> {
    const { plan, insideTurn } = request
    return this.#went('restore', session, { ...asked(request), ...optional('plan', plan), ...optional('insideTurn', insideTurn), confirmed: true })
  }

  async undoNth(session: string, k: number, insideTurn: boolean): Promise<Outcome> {
    return this.#went('undo', session, { nth: k, insideTurn, confirmed: true })
  }

  async drop(session: string, all: boolean): Promise<{ dropped: number; kept: number }> {
    const raw = object(await this.#call('drop', session, { kinds: REWIND_KINDS, ...(all ? { allSessions: true } : {}), confirmed: true }))
    return { dropped: array(raw['dropped']).length, kept: array(raw['kept']).length }
  }

  async mark(session: string, seq: number, turn: number | null, objective?: string): Promise<{ id: number; logLength: number }> {
    const raw = object(await this.#call('mark', session, { logLength: seq, ...optional('turn', turn ?? undefined), ...optional('objective', objective) }))
    return { id: number(raw['id']) ?? 0, logLength: number(raw['logLength']) ?? seq }
  }

  async latestMark(session: string): Promise<Mark | undefined> {
    const raw = object(object(await this.#call('latestMark', session, {}))['mark'])
    const id = number(raw['id'])
    if (id === undefined) return undefined
    const folded = number(raw['foldedAt']) !== undefined
    return { id, logLength: number(raw['logLength']) ?? 0, turn: number(raw['turn']) ?? null, folded, ...optional('objective', text(raw['objective'])) }
  }

  async completeFold(session: string, id: number): Promise<void> {
    await this.#call('completeFold', session, { id })
  }

  async nameSet(session: string, named: { kind: string; label?: string; note?: string; limit: number }): Promise<NamedPoint> {
    return namedPoint(await this.#call('name.set', session, named))
  }

  async nameList(session: string): Promise<readonly NamedPoint[]> {
    return array(object(await this.#call('name.list', session, {}))['points']).map(namedPoint)
  }

  close(): void {
    this.#sidecar.close()
  }

  async end(): Promise<void> {
    await this.#older.settled()
    return this.#sidecar.end()
  }

  /** A fork that failed leaves the files restored: that is an outcome, with what was not done (002-37). */
  async #went(method: string, session: string, params: object): Promise<Outcome> {
    try {
      return outcome(await this.#call(method, session, params))
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== 'not-forked') throw error
      const done = object(error.data)['outcome']
      if (done === undefined) throw error
      return { ...outcome(done, error.message), status: 'partial' }
    }
  }

  #call(method: string, session: string, params: object): Promise<unknown> {
    return this.#sidecar.call(method, { session, ...params })
  }
}

const namedPoint = (item: unknown): NamedPoint => {
  const raw = object(item)
  return { label: text(raw['label']) ?? '', session: bare(text(raw['session']) ?? ''), seq: number(raw['seq']) ?? 0, ...optional('note', text(raw['note'])) }
}

/** What the sidecar asks of the host. */
function handlers(ctx: Context): Handlers {
  return {
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
    'session.find': async raw => {
      const child = text(object(raw)['child']) ?? ''
      if (ctx.sessions.get(child) !== undefined) return { exists: true }
      const persistence = service(ctx, 'sessionPersistence')
      if (persistence === undefined) return { exists: false }
      return { exists: (await persistence.inspect(child).catch(() => undefined)) !== undefined }
    },
    'session.flush': async raw => {
      const session = ctx.sessions.get(bare(text(object(raw)['session']) ?? ''))
      if (session !== undefined) await ctx.sessions.flush(session)
      return {}
    },
    // The plugin asks its user before it calls; whoever else asks gets no answer.
    'approval.ask': async () => ({ decision: 'unavailable' }),
  }
}
