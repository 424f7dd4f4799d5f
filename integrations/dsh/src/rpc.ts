/**
 * JSON-RPC 2.0, one object a line, both directions, over the pipes of one child process.
 *
 * Nothing here knows what the messages mean. A peer that dies fails every open call; whoever owns it starts another.
 */

/** An answer of the peer that is an error, with the stable code of the engine (docs/cli.md) where it gave one. */
export class RpcError extends Error {
  readonly code: string
  readonly hints: readonly string[]
  readonly data: unknown
  constructor(message: string, code: string, hints: readonly string[] = [], data?: unknown) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.hints = hints
    this.data = data
  }
}

/** The peer is gone, or never came: the call may or may not have had an effect. */
export class PeerGone extends Error {
  readonly code = 'SIDECAR_GONE'
  constructor(why: string) {
    super(why)
    this.name = 'PeerGone'
  }
}

/** What answers calls of the peer. */
export type Handlers = Readonly<Record<string, (params: unknown) => Promise<unknown>>>

/** Longest line in either direction, in bytes of UTF-8 (design § 10). */
export const LINE_LIMIT = 8 * 1024 * 1024

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** One connection. */
export class Connection {
  readonly #write: (line: string) => void
  readonly #handlers: Handlers
  readonly #pending = new Map<number, Pending>()
  readonly #notice: (method: string, params: unknown) => void
  #next = 1
  #buffer: Buffer[] = []
  #length = 0
  #skipping = false
  #gone: PeerGone | undefined

  constructor(write: (line: string) => void, handlers: Handlers, notice: (method: string, params: unknown) => void) {
    this.#write = write
    this.#handlers = handlers
    this.#notice = notice
  }

  /** Calls the peer. Rejects with {@link RpcError} for its errors, with {@link PeerGone} when it ends first. */
  call(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone)
    const id = this.#next++
    const line = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    if (Buffer.byteLength(line) > LINE_LIMIT) return Promise.reject(new RpcError(`${method}: the request is too large`, 'usage'))
    return new Promise((resolve, reject) => {
      const cancel = (): void => this.#send({ jsonrpc: '2.0', method: '$/cancel', params: { id } })
      signal?.addEventListener('abort', cancel, { once: true })
      const settle = (): void => {
        this.#pending.delete(id)
        signal?.removeEventListener('abort', cancel)
      }
      this.#pending.set(id, {
        resolve: value => (settle(), resolve(value)),
        reject: error => (settle(), reject(error)),
      })
      this.#raw(line)
    })
  }

  /** Bytes of the peer, in any pieces. */
  feed(chunk: Buffer): void {
    let rest = chunk
    for (;;) {
      const end = rest.indexOf(0x0a)
      if (end < 0) break
      this.#take(rest.subarray(0, end))
      this.#line()
      rest = rest.subarray(end + 1)
    }
    this.#take(rest)
  }

  /** The peer has ended: every open call fails, and so does every later one. */
  close(why: string): void {
    if (this.#gone !== undefined) return
    this.#gone = new PeerGone(why)
    for (const pending of [...this.#pending.values()]) pending.reject(this.#gone)
  }

  #take(piece: Buffer): void {
    if (piece.length === 0) return
    this.#length += piece.length
    if (this.#length > LINE_LIMIT) {
      this.#skipping = true
      this.#buffer = []
    }
    if (!this.#skipping) this.#buffer.push(piece)
  }

  #line(): void {
    const text = this.#skipping ? '' : Buffer.concat(this.#buffer).toString('utf8')
    const skipped = this.#skipping
    this.#buffer = []
    this.#length = 0
    this.#skipping = false
    if (skipped) return this.#notice('$/malformed', { why: 'a line is longer than 8 MiB' })
    if (text.trim() === '') return
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      return this.#notice('$/malformed', { why: 'a line is no JSON', line: text.slice(0, 200) })
    }
    if (typeof message !== 'object' || message === null) return this.#notice('$/malformed', { why: 'a line is no object' })
    this.#receive(message as Record<string, unknown>)
  }

  #receive(message: Record<string, unknown>): void {
    const { id, method } = message
    if (typeof method === 'string') {
      if (id === undefined || id === null) return this.#notice(method, message['params'])
      void this.#answer(id, method, message['params'])
      return
    }
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (pending === undefined) return this.#notice('$/malformed', { why: 'an answer to nothing', id })
    const error = message['error']
    if (typeof error === 'object' && error !== null) pending.reject(errorOf(error as Record<string, unknown>))
    else pending.resolve(message['result'])
  }

  async #answer(id: unknown, method: string, params: unknown): Promise<void> {
    const handler = Object.hasOwn(this.#handlers, method) ? this.#handlers[method] : undefined
    if (handler === undefined) return this.#send({ jsonrpc: '2.0', id, error: { code: -32601, message: `unknown method ${method}` } })
    try {
      this.#send({ jsonrpc: '2.0', id, result: (await handler(params)) ?? null })
    } catch (error) {
      const { message, code } = error as { message?: string; code?: unknown }
      const data = typeof code === 'string' ? { data: { code } } : {}
      this.#send({ jsonrpc: '2.0', id, error: { code: -32000, message: message ?? String(error), ...data } })
    }
  }

  #send(message: unknown): void {
    if (this.#gone === undefined) this.#raw(JSON.stringify(message))
  }

  #raw(line: string): void {
    this.#write(`${line}\n`)
  }
}

/** The engine's stable code is in `data.code`; the number of JSON-RPC says nothing to a user. */
function errorOf(error: Record<string, unknown>): RpcError {
  const data = (typeof error['data'] === 'object' && error['data'] !== null ? error['data'] : {}) as Record<string, unknown>
  const code = typeof data['code'] === 'string' ? data['code'] : `rpc${String(error['code'] ?? '')}`
  const hints = Array.isArray(data['hints']) ? data['hints'].map(String) : []
  return new RpcError(String(error['message'] ?? 'failed'), code, hints, data)
}
