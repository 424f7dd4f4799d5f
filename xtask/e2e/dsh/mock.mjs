// A model that does what the prompt says: the last user message with a script between <<< and >>> is a JSON array, one
// entry for each answer of the turn: { think?, say?, call?: [[tool, arguments], …] }. Speaks the streaming
// chat-completions protocol on loopback and logs every request it gets.
//
//   node mock.mjs LOG          prints "port N" once it listens
import { createServer } from 'node:http'
import { appendFileSync } from 'node:fs'

const [log] = process.argv.slice(2)

const textOf = content =>
  typeof content === 'string' ? content : (content ?? []).map(part => part.text ?? '').join('')

/** The answer that the script asks for at this point of the turn. */
function answerTo(messages) {
  for (let at = messages.length - 1; at >= 0; at--) {
    if (messages[at].role !== 'user') continue
    const script = /<<<([\s\S]*)>>>/.exec(textOf(messages[at].content))
    if (!script) continue
    const given = messages.slice(at + 1).filter(message => message.role === 'assistant').length
    return JSON.parse(script[1])[given] ?? { say: 'Done.' }
  }
  return { say: 'A short title' }
}

let calls = 0
createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    if (!request.url.endsWith('/chat/completions')) return response.writeHead(404).end('{}')
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const about = (body.tools ?? []).length > 0 ? 'turn' : 'title'
    appendFileSync(log, JSON.stringify({ about, messages: body.messages }) + '\n')
    const answer = about === 'title' ? { say: 'A short title' } : answerTo(body.messages)
    const send = object => response.write(`data: ${JSON.stringify(object)}\n\n`)
    const delta = (fields, finish_reason = null) => send({ choices: [{ index: 0, delta: fields, finish_reason }] })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    delta({ role: 'assistant', content: '' })
    for (const word of (answer.think ?? '').match(/\S+\s*/g) ?? []) delta({ reasoning_content: word })
    for (const word of (answer.say ?? '').match(/\S+\s*/g) ?? []) delta({ content: word })
    ;(answer.call ?? []).forEach(([name, input], index) => {
      const id = `call_${++calls}`
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
      for (const piece of JSON.stringify(input).match(/[\s\S]{1,20}/g))
        delta({ tool_calls: [{ index, function: { arguments: piece } }] })
    })
    const usage = { prompt_tokens: 100, completion_tokens: 10, prompt_cache_hit_tokens: 0, prompt_cache_miss_tokens: 100 }
    send({ choices: [{ index: 0, delta: {}, finish_reason: answer.call ? 'tool_calls' : 'stop' }], usage })
    response.end('data: [DONE]\n\n')
  })
}).listen(0, '127.0.0.1', function () {
  console.log(`port ${this.address().port}`)
})
