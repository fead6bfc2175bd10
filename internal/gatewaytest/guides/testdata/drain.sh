### $ tollgate line resume first
ask() { curl -s http://127.0.0.1:8080/v1/chat/completions -H "Authorization: Bearer $KEY" -d '{"model": "swift", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'; }
ask | grep DONE
ask | grep DONE

### ## A node
tollgate line drain second
until tollgate line list | tr -d ' \n' | grep '"first","provider":"sandbox","state":"in_service".*"second","provider":"sandbox","state":"drained"'; do sleep 0.1; done
