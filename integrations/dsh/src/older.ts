/**
 * Stores of the plugins that this one replaces (TJ16, deviation 16). At the first mount in a workspace what they
 * recorded of it comes in, by `rwd import --once`; they are read and never written. A failure is told once and nothing
 * else depends on it.
 */

import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Found } from './binary.ts'
import { engineEnvironment, type Config } from './config.ts'
import type { Logger, SubprocessService } from './host.ts'

export interface OlderParts {
  readonly subprocess: Pick<SubprocessService, 'spawn'>
  readonly config: Config
  readonly log: Logger
  readonly find: () => Promise<Found>
  /** The host's home. */
  readonly home: string
  readonly exists?: (path: string) => boolean
  readonly patienceMs?: number
}

/** A store that is there: which plugin's, and where, if not in its default place. */
export interface Store {
  readonly kind: 'dsh-checkpoint' | 'dsh-checkpoint-rewind' | 'tool-checkpoint'
  readonly path?: string
}

/** Whoever lists points waits so long for what older plugins left. */
const PATIENCE_MS = 10_000
const GRACE_MS = 5_000
/** Nothing to do, and only a part of it. */
const NOTHING = 6
const PARTIAL = 5

/** The stores that are there: in the directory of the settings, which may hold nothing but our own points, and in the default place. */
export function stores(home: string, dataDir: string | undefined, exists: (path: string) => boolean = existsSync): Store[] {
  const found: Store[] = []
  const put = (kind: Store['kind'], own: string | undefined, ...places: string[]): void => {
    if (own !== undefined && exists(own)) found.push({ kind, path: own })
    if (places.some(place => exists(place))) found.push({ kind })
  }
  put('dsh-checkpoint', dataDir === undefined ? undefined : join(dataDir, 'checkpoint'), join(home, 'checkpoint'))
  put('dsh-checkpoint-rewind', dataDir, join(home, 'dsh-checkpoint-rewind'), join(home, 'storages'))
  put('tool-checkpoint', undefined, join(home, 'storages', 'checkpoint.json'))
  return found
}

export class Older {
  readonly #parts: OlderParts
  readonly #roots = new Map<string, Promise<void>>()

  constructor(parts: OlderParts) {
    this.#parts = parts
  }

  /** Begins with a workspace, once; it never fails. */
  begin(root: string): void {
    if (!this.#roots.has(root)) this.#roots.set(root, this.#takeOver(root))
  }

  /** Ends when everything that was begun has come in, or after a while. */
  async settled(): Promise<void> {
    if (this.#roots.size === 0) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, this.#parts.patienceMs ?? PATIENCE_MS)
    })
    await Promise.race([Promise.all(this.#roots.values()), late])
    clearTimeout(timer)
  }

  async #takeOver(root: string): Promise<void> {
    const { config, home, log, find, exists } = this.#parts
    try {
      const there = stores(home, config.dataDir, exists)
      if (there.length === 0) return
      const program = await find()
      if ('missing' in program) return
      for (const store of there) await this.#import(program.path, root, store)
    } catch (error) {
      log.warn(`rwd: what an older plugin recorded of ${root} was not taken over: ${(error as Error).message}`)
    }
  }

  async #import(program: string, root: string, { kind, path }: Store): Promise<void> {
    const { subprocess, config, home, log } = this.#parts
    const data = config.dataDir === undefined ? [] : ['--data-dir', config.dataDir]
    const handle = subprocess.spawn({
      argv: [program, '-C', root, ...data, '--json', '--no-input', 'import', '--once', '--from', kind, ...(path === undefined ? [] : ['--path', path])],
      cwd: tmpdir(),
      stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 * 1024 } },
      graceMs: GRACE_MS,
      env: { ...engineEnvironment(config), DSH_HOME: home },
    })
    let said = ''
    handle.stdout?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    handle.stdin?.end()
    const { exitCode } = await handle.done
    if (exitCode === NOTHING) return
    const answer = JSON.parse(said) as { points?: { new?: boolean }[]; marks?: { new?: boolean }[]; skipped?: unknown[]; error?: { message?: string } }
    if (exitCode !== 0 && exitCode !== PARTIAL) throw new Error(answer.error?.message ?? `rwd import ended with ${String(exitCode)}`)
    const [points, marks] = [answer.points, answer.marks].map(all => (all ?? []).filter(one => one.new === true).length)
    const left = answer.skipped?.length ?? 0
    const told = `rwd: from the store of ${kind}, which stays as it is: ${String(points)} points and ${String(marks)} marks of ${root}`
    if (left === 0) log.info(told)
    else log.warn(`${told}; ${left} records could not be taken over, "rwd import --from ${kind} --dry-run" there says why`)
  }
}
