/**
 * When points are made (design § 11): before the first model request of a turn, before a step's first change, at
 * intervals, and after the turn. Captures of one session are strictly serial (000-09); one that fails is told once and
 * never breaks a turn, unless the configuration says that an unprotected tool must not run.
 */

import { isMutating, type Config } from './config.ts'
import { engineLost, type Captured, type Engine, type Opened } from './engine.ts'
import { eventsOf, pluginMessage, type Agent, type Context, type Logger, type PreToolDecision, type Session, type SessionEvent, type ToolExecution } from './host.ts'
import { openStep, reasonOf } from './log.ts'

export interface CaptureParts {
  readonly ctx: Context
  readonly config: Config
  readonly engine: Engine
  readonly log: Logger
  /** After a turn's end is durable and captured: 003's automatic line. */
  readonly turnClosed: (session: Session, event: SessionEvent) => Promise<void>
  readonly now?: () => number
}

interface State {
  /** The last job of the session; the next one waits for it. */
  tail: Promise<unknown>
  /** Points before a change, one for each step (002-08). */
  readonly steps: Map<string, Promise<Captured>>
  lastAuto: number
  told: boolean
}

export class Captures {
  readonly #parts: CaptureParts
  readonly #states = new Map<string, State>()
  readonly #opened = new Map<string, Promise<Opened>>()
  /** Whose turn it is, or was last. */
  readonly #agents = new Map<string, Agent>()

  constructor(parts: CaptureParts) {
    this.#parts = parts
  }

  /** Where the session's workspace is. Asked once, and again after the engine was started anew. */
  open(session: Session): Promise<Opened> {
    const known = this.#opened.get(session.id)
    if (known !== undefined) return known
    const { cwd, parentSession, seedLength, origin } = session.header
    if (cwd === undefined) return Promise.reject(new Error('the session has no working directory'))
    const opening = this.#parts.engine.open({
      id: session.id,
      cwd,
      ...(parentSession === undefined ? {} : origin === 'subagent' ? { subagentOf: parentSession } : { parent: parentSession }),
      ...(seedLength === undefined ? {} : { seedLength }),
    })
    this.#opened.set(session.id, opening)
    opening.then(
      ({ root, unfinished }) => {
        if (unfinished !== undefined) this.#parts.log.warn(`a restore in ${root} was interrupted: run "rwd recover --finish" or "rwd recover --back" there`)
      },
      () => this.#opened.delete(session.id),
    )
    return opening
  }

  /** The engine was started anew: nothing is open in it. */
  forget(): void {
    this.#opened.clear()
  }

  /** Tells the model of a session something before its next message. A failure fails nothing (002-38). */
  tellModel(session: string, text: string): void {
    try {
      this.#agents.get(session)?.inject?.(pluginMessage(text))
    } catch {
      // The host's read-before-edit rule protects it anyway.
    }
  }

  /** Registers on the host's hooks. Every listener calls on and returns the host's own decision. */
  listen(): void {
    const { ctx } = this.#parts
    ctx.on('agent/pre-step', (async (payload: { agent: Agent; turn: number; step: number; signal: AbortSignal }, next: () => Promise<unknown>) => {
      this.#agents.set(payload.agent.session.id, payload.agent)
      await this.preStep(payload.agent.session, payload.turn, payload.step, payload.signal)
      return next()
    }) as never, { prepend: true })
    ctx.on('tools/pre-execute', (async (exec: ToolExecution, next: () => Promise<PreToolDecision>) => {
      const why = isMutating(this.#parts.config, exec.name) ? await this.beforeTool(exec) : undefined
      if (why !== undefined && this.#parts.config.onCaptureFailure === 'block')
        return { kind: 'deny', reason: `rwd could not make a point before this tool, and onCaptureFailure is block: ${why}` }
      return next()
    }) as never, { prepend: true })
    for (const intent of ['fs/write-intent', 'fs/edit-intent'])
      ctx.on(intent, (async (_target: unknown, actor: ToolExecution | undefined, next: () => Promise<unknown>) => {
        if (actor?.agent !== undefined) await this.beforeTool(actor)
        return next()
      }) as never, { prepend: true })
    ctx.on('session/event', ((session: Session, event: SessionEvent) => this.sawEvent(session, event)) as never)
    ctx.on('session/disposed', ((session: Session) => {
      this.#agents.delete(session.id)
      const state = this.#states.get(session.id)
      if (state === undefined) return
      const closed = state.tail.then(() => this.#parts.engine.closeSession(session.id)).catch(() => undefined)
      state.tail = closed
      void closed.then(() => {
        if (this.#states.get(session.id) !== state || state.tail !== closed) return
        this.#states.delete(session.id)
        this.#opened.delete(session.id)
      })
    }) as never)
  }

  /** Step 1: the point before the turn. Later steps: the point at intervals. */
  async preStep(session: Session, turn: number, step: number, signal?: AbortSignal): Promise<void> {
    if (session.header.cwd === undefined) return
    const { engine, config } = this.#parts
    const seq = session.seq
    if (step === 1) {
      const taken = this.#enqueue(session, () => engine.turnBegin(session.id, turn, seq))
      // The point before the turn is also the one before the first step's first change.
      this.#state(session).steps.clear()
      await this.#waited(session, taken, signal)
      return
    }
    const { enabled, intervalMinutes } = config.autoCheckpoint
    const now = (this.#parts.now ?? Date.now)()
    const state = this.#state(session)
    if (!enabled || now - state.lastAuto < intervalMinutes * 60_000) return
    const taken = this.#enqueue(session, () =>
      engine.capture(session.id, { kind: 'auto', turn, step, seq, trigger: 'auto', deadlineMs: config.captureDeadlineMs }),
    )
    const captured = await this.#waited(session, taken, signal)
    // A failure does not move the clock on (002-09).
    if (captured !== undefined && captured.gap === undefined) state.lastAuto = now
  }

  /** The point before a tool that may change files. Why there is none, if there is none. */
  async beforeTool(exec: Pick<ToolExecution, 'agent' | 'name' | 'callId' | 'signal'>): Promise<string | undefined> {
    const session = exec.agent?.session
    if (session === undefined || session.header.cwd === undefined) return undefined
    const open = openStep(eventsOf(session))
    if (open === undefined) return undefined
    const { turn, step } = open
    const { steps } = this.#state(session)
    const key = `${turn}.${step}`
    let taken = steps.get(key)
    if (taken === undefined) {
      const request = {
        kind: 'mutation' as const,
        turn,
        step,
        seq: session.seq,
        trigger: exec.name,
        callId: exec.callId,
        deadlineMs: this.#parts.config.captureDeadlineMs,
      }
      taken = this.#enqueue(session, () => this.#parts.engine.capture(session.id, request))
      steps.set(key, taken)
    }
    try {
      const captured = await settled(taken, exec.signal)
      return captured?.gap
    } catch (error) {
      return (error as Error).message
    }
  }

  /** `turn/end` starts the point after the turn; nobody can wait for it here. */
  sawEvent(session: Session, event: SessionEvent): void {
    const { turn, step } = event.data as { turn?: unknown; step?: unknown }
    if (session.header.cwd === undefined || typeof turn !== 'number') return
    const { engine, ctx, log, turnClosed } = this.#parts
    if (event.type === 'step/end' && typeof step === 'number')
      void this.#enqueue(session, () => engine.stepEnd(session.id, turn, step, event.seq)).catch(() => undefined)
    if (event.type !== 'turn/end') return
    const job = this.#enqueue(session, async () => {
      // A position counts only once it is on the disk: the log's tail may come back with other content.
      await ctx.sessions.flush(session).catch((error: Error) => log.warn(`the end of turn ${turn} is not on the disk yet: ${error.message}`))
      return engine.turnEnd(session.id, turn, event.seq, reasonOf(event))
    })
    void this.#waited(session, job).then(() => turnClosed(session, event)).catch((error: Error) => log.warn(error.message))
  }

  /** Runs something of the session after all that was asked before it. */
  inOrder<T>(session: Session, job: () => Promise<T>): Promise<T> {
    return this.#enqueue(session, job)
  }

  /** Everything that is under way. */
  async settle(): Promise<void> {
    // What ends may have asked for more, as the line that follows a turn's end.
    for (let before: unknown[] = []; ; ) {
      const tails = [...this.#states.values()].map(state => state.tail)
      if (tails.every((tail, at) => tail === before[at]) && tails.length === before.length) return
      before = tails
      await Promise.allSettled(tails)
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  #state(session: Session): State {
    let state = this.#states.get(session.id)
    if (state === undefined) {
      state = { tail: Promise.resolve(), steps: new Map(), lastAuto: 0, told: false }
      this.#states.set(session.id, state)
    }
    return state
  }

  #enqueue<T>(session: Session, job: () => Promise<T>): Promise<T> {
    const state = this.#state(session)
    const run = async (): Promise<T> => {
      await this.open(session)
      try {
        return await job()
      } catch (error) {
        // The process died in between and is started anew by the next call: once more, as all of these may be repeated.
        if (!engineLost(error)) throw error
        await this.open(session)
        return job()
      }
    }
    const done = state.tail.then(run, run)
    state.tail = done.catch(() => undefined)
    return done
  }

  async #waited(session: Session, taken: Promise<Captured>, signal?: AbortSignal): Promise<Captured | undefined> {
    try {
      const captured = await settled(taken, signal)
      if (captured?.gap !== undefined) this.#tell(session, captured.gap)
      return captured
    } catch (error) {
      this.#tell(session, (error as Error).message)
      return undefined
    }
  }

  /** The first gap of a session is told; the list says the rest. */
  #tell(session: Session, why: string): void {
    const state = this.#state(session)
    if (state.told) return
    state.told = true
    this.#parts.log.warn(`session ${session.id} is not protected at the moment: ${why}`)
  }
}

/** Waits, but no longer than the caller does. */
async function settled<T>(work: Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  if (signal === undefined) return work
  if (signal.aborted) return undefined
  let stop: (() => void) | undefined
  const aborted = new Promise<undefined>(resolve => {
    stop = () => resolve(undefined)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    if (stop !== undefined) signal.removeEventListener('abort', stop)
  }
}
