/**
 * A thin client of `rwd sidecar`: undo for coding agents, from TypeScript and JavaScript.
 *
 * The protocol is described in docs/sidecar.md; methods and fields are those of the page, in the same spelling. No
 * dependencies; Node 22.18 or newer runs it as it is.
 */

import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

/** The protocol that is spoken here. */
export const PROTOCOL = 1
/** Longest line in either direction, in bytes. */
export const MAX_LINE = 8 << 20

/** What goes over the pipe. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined }
/** Parameters or results: an object. */
export type Fields = { [key: string]: Json | undefined }
/** Answers what the sidecar asks. Throw {@link Refused} to say no with a code. */
export type Callback = (params: any) => unknown

/** A path below the root. `pathBytes` (base64) only where the name is not UTF-8. */
export interface PathEntry {
  path: string
  pathBytes?: string
}
/** A path with the reason why it stands there. */
export interface ReasonEntry extends PathEntry {
  reason: string
  cause?: string
}
/** Where the conversation is cut: after `seq`, or before everything. */
export interface Cut {
  seq: number | null
  rule: string
  session: string
}
/** What became of a capture. */
export interface Captured {
  id: string | null
  tree: string | null
  created: boolean
  changed: number
  files: number
  skipped: ReasonEntry[]
  newBytes: number
  consistency: 'quiet' | 'live' | 'watched'
  ms: number
  warnings: string[]
  gap: { id: string | null; reason: string; code: string; message: string } | null
}
/** What a restore would do. */
export interface Preview {
  plan: string
  target: string | null
  reverses: string | null
  session: string
  overwrite: PathEntry[]
  recreate: PathEntry[]
  mode: PathEntry[]
  remove: PathEntry[]
  unchanged: number
  keptNew: PathEntry[]
  handMade: PathEntry[]
  uncaptured: PathEntry[]
  foreign: PathEntry[]
  blocked: ReasonEntry[]
  uncovered: ReasonEntry[]
  undecided: PathEntry[]
  cut: Cut | null
  scope: 'files' | 'chat' | 'both'
  config: boolean
  notes: string[]
}
/** What a restore did. */
export interface Restored {
  op: string | null
  nth: number | null
  status: 'restored' | 'partial' | 'nothing'
  target: string | null
  reverses: string | null
  restored: PathEntry[]
  removed: PathEntry[]
  keptNew: PathEntry[]
  handMade: PathEntry[]
  foreign: PathEntry[]
  uncaptured: PathEntry[]
  blocked: ReasonEntry[]
  uncovered: ReasonEntry[]
  unchanged: number
  guard: string | null
  childSessionId: string | null
  contextOnly: boolean
  cut: Cut | null
  stored: (PathEntry & { blob: string })[]
  notes: string[]
}
/** How a restore behaves. */
export interface Policy {
  exact?: boolean
  drift?: 'ask' | 'keep' | 'overwrite'
  overwrite?: PathEntry[]
  withOthers?: boolean
  skipBlocked?: boolean
  guard?: 'require' | 'warn' | 'off'
  files?: 'everywhere' | 'git-only'
  paths?: PathEntry[]
}
/** What `preview` and `restore` have in common. */
export interface Going {
  policy?: Policy
  scope?: 'default' | 'files' | 'chat' | 'both'
  boundary?: 'before' | 'after'
  config?: boolean
  adopt?: boolean
}
/** What only `restore` takes. */
export interface Confirming {
  plan?: string
  confirmed?: boolean
  insideTurn?: boolean
  hostState?: string
}

/** The sidecar said no. `code` is stable. */
export class RwdError extends Error {
  readonly code: string
  readonly data: any
  constructor(message: string, code: string, data: unknown) {
    super(message)
    this.name = 'RwdError'
    this.code = code
    this.data = data
  }
  get hints(): string[] {
    return this.data?.hints ?? []
  }
}

/** The sidecar ended before it answered: the call may or may not have had an effect. */
export class Gone extends Error {}

/** Thrown by a callback: no, with a code of the contract, as `SESSION_NOT_FOUND`. */
export class Refused extends Error {
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

export interface Options {
  /** Else `RWD_BIN`, else `rwd` on the path. */
  program?: string
  dataDir?: string
  callbacks?: Record<string, Callback>
  /** Told of `notice` and `progress`. */
  listener?: (method: string, params: any) => void
  /** Added to the environment. */
  env?: Record<string, string>
  name?: string
}

interface Waiting {
  resolve(value: any): void
  reject(error: Error): void
}

/** A running `rwd sidecar`. */
export class Sidecar {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #callbacks: Record<string, Callback>
  readonly #listener: Options['listener']
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended: Promise<number>
  #next = 0
  #gone: Gone | undefined
  #pieces: Buffer[] = []
  #length = 0
  /** What the sidecar says of itself. */
  welcome!: { protocol: number; engine: Fields; capabilities: string[] }

  /** Starts one and greets it. */
  static async start(options: Options = {}): Promise<Sidecar> {
    const sidecar = new Sidecar(options)
    const client = { name: options.name ?? 'rwd-client-typescript', pid: process.pid }
    const callbacks = Object.keys(options.callbacks ?? {})
    try {
      sidecar.welcome = await sidecar.call('hello', { protocol: PROTOCOL, client, callbacks })
    } catch (error) {
      await sidecar.close()
      throw error
    }
    return sidecar
  }

  private constructor({ program, dataDir, callbacks, listener, env }: Options) {
    this.#callbacks = callbacks ?? {}
    this.#listener = listener
    const args = [...(dataDir === undefined ? [] : ['--data-dir', dataDir]), 'sidecar']
    // A workspace is not its directory: it may be removed.
    const child = spawn(program ?? process.env['RWD_BIN'] ?? 'rwd', args, {
      cwd: '/',
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child = child
    child.stdin.on('error', error => this.#leave(`rwd does not read: ${error.message}`))
    child.stdout.on('data', (piece: Buffer) => this.#feed(piece))
    this.#ended = new Promise(resolve => {
      child.on('error', error => {
        this.#leave(`rwd could not be started: ${error.message}`)
        resolve(-1)
      })
      child.on('close', code => {
        this.#leave('rwd ended before it answered')
        resolve(code ?? -1)
      })
    })
  }

  /** Sends a request and waits. An aborted one is given up: what has not been written is not written. */
  call(method: string, params: object, signal?: AbortSignal): Promise<any> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone)
    if (signal?.aborted) return Promise.reject(signal.reason)
    const id = ++this.#next
    const line = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    if (Buffer.byteLength(line) > MAX_LINE) return Promise.reject(new RangeError('the request is longer than 8 MiB'))
    return new Promise((resolve, reject) => {
      const cancel = (): void => this.#send({ jsonrpc: '2.0', method: '$/cancel', params: { id } })
      signal?.addEventListener('abort', cancel, { once: true })
      const settle = (): void => signal?.removeEventListener('abort', cancel)
      this.#waiting.set(id, {
        resolve: value => (settle(), resolve(value)),
        reject: error => (settle(), reject(error)),
      })
      this.#child.stdin.write(`${line}\n`)
    })
  }

  /** Opens a session; `more` is what `session.open` takes (`parent`, `home`, `log`, `beats`, …). */
  async open(session: string, where: { harness: string; root: string } & Fields): Promise<Session> {
    const { root, ...more } = where
    return new Session(this, session, await this.call('session.open', { session, roots: [root], ...more }))
  }

  /** Ends it in an orderly way: what runs is finished first. Gives its exit code. */
  async close(graceMs = 10_000): Promise<number> {
    this.#child.stdin.end()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs)
    try {
      return await this.#ended
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'close')
  }

  #send(message: unknown): void {
    if (this.#gone === undefined) this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  #feed(piece: Buffer): void {
    let rest = piece
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#keep(rest.subarray(0, end))
      const line = this.#length > MAX_LINE ? undefined : Buffer.concat(this.#pieces).toString('utf8')
      this.#pieces = []
      this.#length = 0
      rest = rest.subarray(end + 1)
      if (line !== undefined) this.#take(line)
    }
    this.#keep(rest)
  }

  #keep(piece: Buffer): void {
    this.#length += piece.length
    if (this.#length <= MAX_LINE) this.#pieces.push(piece)
    else this.#pieces = []
  }

  #take(line: string): void {
    let message: any
    try {
      message = JSON.parse(line)
    } catch {
      return
    }
    if (typeof message?.method === 'string') {
      if (message.id === undefined) this.#listener?.(message.method, message.params)
      else void this.#answer(message.id, message.method, message.params)
      return
    }
    const waiting = this.#waiting.get(message?.id)
    if (waiting === undefined) return
    this.#waiting.delete(message.id)
    const { error } = message
    if (error === undefined) waiting.resolve(message.result)
    else waiting.reject(new RwdError(String(error.message), String(error.data?.code ?? ''), error.data))
  }

  async #answer(id: unknown, method: string, params: unknown): Promise<void> {
    const callback = Object.hasOwn(this.#callbacks, method) ? this.#callbacks[method] : undefined
    try {
      if (callback === undefined) throw new Error(`${method} is not answered`)
      this.#send({ jsonrpc: '2.0', id, result: (await callback(params)) ?? {} })
    } catch (error) {
      const data = error instanceof Refused ? { data: { code: error.code } } : {}
      this.#send({ jsonrpc: '2.0', id, error: { code: -32000, message: (error as Error)?.message ?? String(error), ...data } })
    }
  }

  #leave(why: string): void {
    if (this.#gone !== undefined) return
    this.#gone = new Gone(why)
    for (const waiting of this.#waiting.values()) waiting.reject(this.#gone)
    this.#waiting.clear()
  }
}

/** An open session. Fields are those of docs/sidecar.md. */
export class Session {
  readonly sidecar: Sidecar
  readonly name: string
  /** The answer to `session.open`. */
  readonly opened: any
  constructor(sidecar: Sidecar, name: string, opened: unknown) {
    this.sidecar = sidecar
    this.name = name
    this.opened = opened
  }

  /** Any method of the protocol for this session. */
  call(method: string, params: object = {}, signal?: AbortSignal): Promise<any> {
    return this.sidecar.call(method, { session: this.name, ...params }, signal)
  }
  /** Before the first model request of a turn. */
  beginTurn(turn: number, more: Fields = {}): Promise<Captured> {
    return this.call('turn.begin', { turn, ...more })
  }
  /** Before a tool that may change files. */
  beforeTool(trigger: string, more: Fields = {}): Promise<Captured> {
    return this.call('capture', { kind: 'mutation', trigger, ...more })
  }
  /** After a turn, once its end is on the disk. */
  endTurn(turn: number, more: Fields = {}): Promise<Captured> {
    return this.call('turn.end', { turn, ...more })
  }
  /** A point that somebody asked for. */
  save(note?: string, more: Fields = {}): Promise<Captured> {
    return this.call('capture', { kind: 'manual', note, ...more })
  }
  /** Points, gaps, operations. */
  list(more: Fields = {}): Promise<any> {
    return this.call('list', more)
  }
  /** What {@link restore} would do. */
  preview(target: string, more: Going = {}): Promise<Preview> {
    return this.call('preview', { target, ...more })
  }
  /** Goes back to a point. */
  restore(target: string, more: Going & Confirming = {}, signal?: AbortSignal): Promise<Restored> {
    return this.call('restore', { target, ...more }, signal)
  }
  /** Takes the last restore back. */
  undo(more: { operation?: string; nth?: number; policy?: Policy } & Confirming = {}): Promise<Restored> {
    return this.call('undo', more)
  }
}
