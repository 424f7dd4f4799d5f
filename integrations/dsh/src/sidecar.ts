/**
 * One `rwd sidecar` per host process: started when it is first needed, started again after it died, ended with the
 * plugin. Its directory is never the workspace: the host ends children as a tree, and a workspace may be removed.
 */

import { tmpdir } from 'node:os'

import { engineEnvironment, type Config } from './config.ts'
import type { Found } from './binary.ts'
import type { Logger, SubprocessHandle, SubprocessService } from './host.ts'
import { Connection, PeerGone, RpcError, type Handlers } from './rpc.ts'

/** The protocol that this plugin speaks (docs/sidecar.md). */
export const PROTOCOL = 1

/** This package's, told to the engine. */
export const VERSION = '0.1.0'

/** After so many starts within the span, the plugin stops trying: something is wrong that a start does not mend. */
const STARTS = 5
const SPAN_MS = 60_000
/** An orderly end, before the process is ended. */
const GRACE_MS = 5_000

export interface SidecarParts {
  readonly subprocess: SubprocessService
  readonly config: Config
  readonly log: Logger
  readonly find: () => Promise<Found>
  readonly handlers: Handlers
  /** Somebody else restored files under a session: what its model should read. */
  readonly restored: (session: string, text: string) => void
  /** A process is gone: whatever was opened in it is not open any more. */
  readonly gone: () => void
  readonly now?: () => number
}

interface Live {
  readonly handle: SubprocessHandle
  readonly connection: Connection
}

/** Why there is no engine: the plugin goes on with the conversation alone. */
export class NoEngine extends Error {
  readonly code = 'NO_ENGINE'
}

export class Sidecar {
  readonly #parts: SidecarParts
  #live: Promise<Live> | undefined
  #starts: number[] = []
  #ended = false

  constructor(parts: SidecarParts) {
    this.#parts = parts
  }

  /** Calls a method of the running process, starting one if there is none. */
  async call(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    const { connection } = await this.#running()
    return connection.call(method, params, signal)
  }

  /** From now on no process is started; one that runs goes on to answer. */
  close(): void {
    this.#ended = true
  }

  /** Ends the process in an orderly way: what it is doing is finished first. */
  async end(): Promise<void> {
    this.close()
    const live = await this.#live?.catch(() => undefined)
    if (live === undefined) return
    await Promise.race([live.connection.call('shutdown', {}).catch(() => undefined), after(GRACE_MS)])
    live.handle.stdin?.end()
    await Promise.race([live.handle.done.catch(() => undefined), after(GRACE_MS)])
    live.handle.terminate()
  }

  #running(): Promise<Live> {
    if (this.#live === undefined && this.#ended) return Promise.reject(new NoEngine('the plugin is being unloaded'))
    this.#live ??= this.#start().catch(error => {
      this.#live = undefined
      throw error
    })
    return this.#live
  }

  async #start(): Promise<Live> {
    const { subprocess, config, log, find, handlers } = this.#parts
    const now = (this.#parts.now ?? Date.now)()
    this.#starts = this.#starts.filter(at => now - at < SPAN_MS)
    if (this.#starts.length >= STARTS) throw new NoEngine(`rwd ended ${STARTS} times within a minute; no more is tried for now`)
    const found = await find()
    if ('missing' in found) throw new NoEngine(found.missing)
    this.#starts.push(now)
    const data = config.dataDir === undefined ? [] : ['--data-dir', config.dataDir]
    const handle = subprocess.spawn({
      argv: patient([found.path, ...data, 'sidecar']),
      cwd: tmpdir(),
      stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 * 1024 } },
      graceMs: GRACE_MS,
      env: engineEnvironment(config),
    })
    const { stdin, stdout } = handle
    if (stdin === undefined || stdout === undefined) throw new NoEngine('the host gave rwd no pipes')
    const connection = new Connection(
      line => void stdin.write(line),
      handlers,
      (method, params) => this.#told(method, params),
    )
    const gone = (why: string): void => {
      connection.close(why)
      this.#live = undefined
      this.#parts.gone()
    }
    stdin.on('error', error => gone(`rwd: ${error.message}`))
    stdout.on('data', (chunk: Buffer) => connection.feed(chunk))
    void handle.done.then(
      ({ exitCode, signal }) => {
        const said = handle.collected.stderr?.readFrom(0).text.trim() ?? ''
        if (!this.#ended) log.warn(`rwd ended (${signal ?? `exit ${String(exitCode)}`})${said === '' ? '' : `: ${said.slice(-500)}`}`)
        gone('rwd ended before it answered')
      },
      (error: Error) => gone(`rwd could not be started: ${error.message}`),
    )
    try {
      await connection.call('hello', { protocol: PROTOCOL, client: { name: 'rwd-dsh', version: VERSION, pid: process.pid }, callbacks: Object.keys(handlers) })
    } catch (error) {
      handle.terminate()
      if (error instanceof PeerGone) throw new NoEngine(`${found.path}: ${error.message}`)
      if (error instanceof RpcError) throw new NoEngine(`${found.path} does not speak protocol ${PROTOCOL}: ${error.message}`)
      throw error
    }
    return { handle, connection }
  }

  #told(method: string, params: unknown): void {
    const { log, restored } = this.#parts
    if (method === 'notice') {
      const { session, text, kind } = (params ?? {}) as { session?: unknown; text?: unknown; kind?: unknown }
      if (kind === 'restored' && typeof session === 'string' && typeof text === 'string') restored(session, text)
      else log.warn(String(text ?? JSON.stringify(params)))
    }
    else if (method === '$/malformed') log.warn(`rwd said something that is not understood: ${JSON.stringify(params)}`)
  }
}

/**
 * The host ends all plugins and all children at the same time, so the first signal comes while the last turn's end is
 * still to be told. The program does not hear it: it ends with its input, and the host's last signal follows the grace.
 */
export function patient(argv: readonly string[], platform: string = process.platform): readonly string[] {
  return platform === 'win32' ? argv : ['/bin/sh', '-c', 'trap "" TERM; exec "$@"', 'sh', ...argv]
}

const after = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms).unref())
