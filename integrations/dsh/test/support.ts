// A host and an engine that remember what was asked of them.
import { readConfig, type Config } from '../src/config.ts'
import type { Captured, CaptureRequest, Change, Engine, Listing, Mark, NamedPoint, Opened, Outcome, Point, Preview, RestoreRequest, SessionRef, TurnRecord } from '../src/engine.ts'
import type { Agent, Context, Session, SessionEvent, SessionHeader } from '../src/host.ts'

export const config = (raw: Record<string, unknown> = {}): Config => readConfig(raw).config

type Op = SessionEvent['surfaceOp']

/** A live session whose log can be written to. */
export class FakeSession implements Session {
  readonly id: string
  readonly header: SessionHeader
  readonly events: SessionEvent[] = []

  constructor(id = 's', header: Partial<SessionHeader> = {}) {
    this.id = id
    this.header = { id, createdAt: 1, cwd: '/shop', ...header }
  }

  get seq(): number {
    return this.events.length
  }

  append(type: string, data: unknown = {}, options: { surfaceOp?: Op; sourceEventSeqs?: number[] } = {}): SessionEvent {
    const event = { seq: this.seq, type, time: 1000 + this.seq, data: data as Record<string, unknown>, ...options } as SessionEvent
    this.events.push(event)
    return event
  }

  deriveEventMessage(event: SessionEvent): unknown {
    return event.data['message'] ?? event.data
  }

  turn(number: number, steps = 1, reason = 'completed'): SessionEvent {
    this.append('turn/start', { turn: number })
    for (let step = 1; step <= steps; step++) {
      this.append('step/start', { turn: number, step })
      this.append('step/end', { turn: number, step })
    }
    return this.append('turn/end', { turn: number, reason: { kind: reason } })
  }

  user(text: string): SessionEvent {
    return this.append('user/message', { id: 'm', role: 'user', content: [{ type: 'text', text }], source: { kind: 'user' } }, { surfaceOp: 'append' })
  }

  assistant(text: string, calls: readonly string[] = []): SessionEvent {
    const content = [...(text === '' ? [] : [{ type: 'text', text }]), ...calls.map(id => ({ type: 'tool-call', id, name: 'x', arguments: '{}' }))]
    return this.append('assistant/message', { message: { content } }, { surfaceOp: 'append' })
  }

  result(call: string, text: string): SessionEvent {
    const block = { type: 'tool-result', toolCallId: call, content: [{ type: 'text', text }] }
    return this.append('tool/result', { message: { content: [block] } }, { surfaceOp: 'append' })
  }
}

export const agentOf = (session: FakeSession, more: Partial<Agent> = {}): Agent & { injected: unknown[]; steered: unknown[] } => {
  const injected: unknown[] = []
  const steered: unknown[] = []
  return { id: session.id, session, options: {}, injected, steered, inject: message => void injected.push(message), steer: message => void steered.push(message), ...more }
}

type Listener = (...args: never[]) => unknown

export class FakeContext {
  readonly listeners = new Map<string, Listener[]>()
  readonly registered: { name: string }[] = []
  readonly provided = new Map<string, unknown>()
  readonly injected: string[] = []
  readonly services: Record<string, unknown>
  readonly live = new Map<string, FakeSession>()
  readonly flushed: string[] = []
  readonly told: string[] = []
  readonly disposers: (() => unknown)[] = []
  flushFails: string | undefined
  readonly logger = { info: () => undefined, warn: (message: string) => void this.told.push(message) }
  readonly tools = { register: (tool: { name: string }) => void this.registered.push(tool) }
  readonly subprocess = {
    spawn: () => {
      throw new Error('nothing is spawned here')
    },
    resolveExecutable: async () => {
      throw new Error('not found')
    },
  }
  readonly sessions

  constructor(services: Record<string, unknown> = {}, ...sessions: FakeSession[]) {
    this.services = services
    for (const session of sessions) this.live.set(session.id, session)
    this.sessions = {
      get: (id: string) => this.live.get(id),
      list: () => [...this.live.values()],
      flush: async (session: Session) => {
        this.flushed.push(session.id)
        if (this.flushFails !== undefined) throw new Error(this.flushFails)
        return true
      },
      fork: (source: FakeSession, boundary?: number, id = 'child') => {
        const child = new FakeSession(id, { parentSession: source.id, seedLength: (boundary ?? 0) + 1 })
        child.events.push(...source.events.slice(0, (boundary ?? 0) + 1))
        this.live.set(id, child)
        return child
      },
      create: (id = 'child', { meta }: { meta: Partial<SessionHeader> }) => {
        const child = new FakeSession(id, meta)
        this.live.set(id, child)
        return child
      },
    }
  }

  get as(): Context {
    return this as unknown as Context
  }

  get(name: string): unknown {
    return this.services[name]
  }

  inject(names: readonly string[], callback: (ctx: never) => void): unknown {
    const known: Record<string, unknown> = { sessions: this.sessions, ...this.services }
    this.injected.push(...names)
    if (names.every(name => known[name] !== undefined)) callback(Object.assign(Object.create(this), this.services) as never)
    return { dispose: () => undefined }
  }

  on(event: string, listener: Listener, options?: { prepend?: boolean }): void {
    const all = this.listeners.get(event) ?? []
    this.listeners.set(event, options?.prepend === true ? [listener, ...all] : [...all, listener])
  }

  effect(setup: () => () => unknown): void {
    this.disposers.push(setup())
  }

  provide(name: string, value: unknown): void {
    this.provided.set(name, value)
  }

  /** Runs a waterfall as the host does. */
  async run(event: string, args: unknown[], last: () => unknown = () => 'host'): Promise<unknown> {
    const chain = (this.listeners.get(event) ?? []) as unknown as ((...args: unknown[]) => unknown)[]
    const at = (index: number): unknown => (index === chain.length ? last() : chain[index]?.(...args, async () => at(index + 1)))
    return at(0)
  }

  emit(event: string, ...args: unknown[]): void {
    for (const listener of this.listeners.get(event) ?? []) (listener as unknown as (...args: unknown[]) => unknown)(...args)
  }
}

export const point = (more: Partial<Point> = {}): Point => ({
  id: 'aaaa0000aaaa0000aaaa0000aaaa0000',
  session: 's',
  kind: 'mutation',
  turn: 1,
  step: 1,
  tree: 'bbbb0000bbbb0000',
  trigger: 'write',
  at: 1_000_000,
  changed: 1,
  bytes: 100,
  names: [],
  restorable: true,
  ...more,
})

export const outcome = (more: Partial<Outcome> = {}): Outcome => ({
  status: 'restored',
  restored: [],
  removed: [],
  keptNew: [],
  blocked: [],
  contextOnly: false,
  notes: [],
  ...more,
})

export const preview = (more: Partial<Preview> = {}): Preview => ({
  plan: 'p1',
  target: 'cccc0000cccc0000cccc0000cccc0000',
  overwrite: [],
  recreate: [],
  remove: [],
  keptNew: [],
  handMade: [],
  foreign: [],
  undecided: [],
  notes: [],
  blocked: [],
  unchanged: 0,
  cut: null,
  ...more,
})

/** An engine whose answers are set by the test. */
export class FakeEngine implements Engine {
  readonly asked: string[] = []
  readonly requests: CaptureRequest[] = []
  readonly restores: RestoreRequest[] = []
  opened: Opened = { root: '/shop', isGitRepo: true, provider: 'git' }
  points: Point[] = []
  turns: TurnRecord[] = []
  outcome: Outcome = outcome()
  previewed: Preview = preview()
  marks: Mark[] = []
  names: NamedPoint[] = []
  dropped = 0
  kept = 0
  fails: Error | undefined
  captured: (request: CaptureRequest | undefined) => Promise<Captured> = async () => ({ id: 'p', created: true, changed: 1 })

  async #say(what: string): Promise<void> {
    this.asked.push(what)
    if (this.fails !== undefined) throw this.fails
  }

  async open(session: SessionRef): Promise<Opened> {
    await this.#say(`open ${session.id}`)
    return this.opened
  }
  async turnBegin(session: string, turn: number): Promise<Captured> {
    await this.#say(`begin ${session} ${turn}`)
    return this.captured(undefined)
  }
  async turnEnd(session: string, turn: number, seq: number, reason: string): Promise<Captured> {
    await this.#say(`end ${session} ${turn} ${seq} ${reason}`)
    return { created: true, changed: 0 }
  }
  async stepEnd(session: string, turn: number, step: number): Promise<void> {
    await this.#say(`step ${session} ${turn}.${step}`)
  }
  async capture(session: string, request: CaptureRequest): Promise<Captured> {
    this.requests.push(request)
    await this.#say(`capture ${session} ${request.kind} ${request.turn}.${request.step ?? ''} ${request.trigger ?? ''}`)
    return this.captured(request)
  }
  async list(_session: string, all = false): Promise<Listing> {
    await this.#say(all ? 'list all' : 'list')
    return { points: this.points, turns: this.turns }
  }
  async preview(_session: string, request: RestoreRequest): Promise<Preview> {
    await this.#say(`preview ${request.target} ${request.drift ?? ''}`.trim())
    return this.previewed
  }
  async restore(_session: string, request: RestoreRequest): Promise<Outcome> {
    this.restores.push(request)
    await this.#say(`restore ${request.target}`)
    return this.outcome
  }
  async undoNth(_session: string, k: number): Promise<Outcome> {
    await this.#say(`undo ${k}`)
    return this.outcome
  }
  async diff(_session: string, from: string, to: string): Promise<readonly Change[]> {
    await this.#say(`diff ${from} ${to}`)
    return [{ path: 'a', kind: 'added' }, { path: 'b', kind: 'changed' }, { path: 'c', kind: 'changed' }]
  }
  async drop(_session: string, all: boolean): Promise<{ dropped: number; kept: number }> {
    await this.#say(`drop ${all ? 'all' : 'session'}`)
    return { dropped: this.dropped, kept: this.kept }
  }
  async mark(_session: string, seq: number, turn: number | null, objective?: string): Promise<{ id: number; logLength: number }> {
    await this.#say('mark')
    const mark = { id: this.marks.length + 1, logLength: seq, turn, folded: false, ...(objective === undefined ? {} : { objective }) }
    this.marks.push(mark)
    return { id: mark.id, logLength: seq }
  }
  async latestMark(): Promise<Mark | undefined> {
    await this.#say('latestMark')
    return this.marks.at(-1)
  }
  async completeFold(_session: string, id: number): Promise<void> {
    await this.#say(`folded ${id}`)
    this.marks = this.marks.map(mark => (mark.id === id ? { ...mark, folded: true } : mark))
  }
  async nameSet(session: string, named: { kind: string; label?: string; note?: string }): Promise<NamedPoint> {
    await this.#say(`name ${session} ${named.label ?? named.kind}${named.note === undefined ? '' : ` ${named.note}`}`)
    return { label: named.label ?? named.kind, session, seq: 3 }
  }
  async nameList(): Promise<readonly NamedPoint[]> {
    await this.#say('names')
    return this.names
  }
  async closeSession(session: string): Promise<void> {
    await this.#say(`close ${session}`)
  }
  close(): void {
    this.asked.push('close')
  }
  async end(): Promise<void> {
    this.asked.push('end')
  }
}
